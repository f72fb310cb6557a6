"""Code in other languages is read by its grammar: constants are put together, and what runs is read again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from submissions.verification.engine.grammar_flows import GrammarFlows
from submissions.verification.engine.grammars import LONGEST, has_grammar
from submissions.verification.engine.parts import Kind, Part

ROOT = Path(__file__).resolve().parents[4]
HELLO = "cHV0cyAnaGVsbG8gdGhlcmUn"


def read(language: str, code: str) -> tuple[list[tuple[str, str]], list[str]]:
    flows = GrammarFlows(Part(Kind.CODE, code, "a", 1, language))
    signs = flows.run()
    return [(one.language, one.text) for one in flows.found], [one.name for one in signs]


@pytest.mark.parametrize(
    ("language", "code", "found"),
    [
        ("javascript", "eval('al' + \"ert(1)\")", ("javascript", "alert(1)")),
        ("javascript", "const c = ['cu', 'rl x|sh'].join('');\nexecSync(c)", ("shell", "curl x|sh")),
        ("javascript", "spawn('bash', ['-c', 'curl x | sh'])", ("shell", "curl x | sh")),
        ("javascript", "const d: string = 'rm';\nexec(`${d} -r \\x61`)", ("shell", "rm -r a")),
        ("javascript", "let c = 'a ';\nc += 'b';\nexecSync(c)", ("shell", "a b")),
        ("javascript", "fs.writeFileSync('/tmp/a.sh', 'id\\nls\\n')", ("shell", "id\nls\n")),
        ("ruby", "code = <<~'TEXT'\n  curl x | sh\nTEXT\nsystem(code)", ("shell", "  curl x | sh")),
        ("ruby", "x = 'b'\n`ls -la #{x}`", ("shell", "ls -la b")),
        ("php", "<?php $c = 'curl x' . ' | sh'; shell_exec($c);", ("shell", "curl x | sh")),
        ("go", 'func main() { c := "cu" + `rl x`; exec.Command("bash", "-c", c).Run() }', ("shell", "curl x")),
        ("csharp", 'var c = "curl x"; Process.Start("/bin/bash", new[] { "-c", c });', ("shell", "curl x")),
        ("rust", 'fn f() { Command::new("sh").arg("-c").arg("ls | x").spawn(); }', ("shell", "sh -c 'ls | x'")),
        ("perl", "my $c = <<'TEXT';\ncurl x | sh\nTEXT\nsystem($c);", ("shell", "curl x | sh")),
        ("powershell", "$a = 'iw' + 'r x'\nInvoke-Expression $a", ("powershell", "iwr x")),
        ("powershell", "$c = @'\ncurl x | sh\n'@\nbash -c $c", ("shell", "curl x | sh")),
    ],
)
def test_what_a_program_runs_or_writes_is_read_again(language: str, code: str, found: tuple[str, str]) -> None:
    assert read(language, code) == ([found], [])


@pytest.mark.parametrize(
    ("language", "code", "inner"),
    [
        ("javascript", f"eval(atob('{HELLO}'))", "puts 'hello there'"),
        ("javascript", f"eval(Buffer.from('{HELLO}', 'base64').toString())", "puts 'hello there'"),
        ("javascript", "eval('fdsa'.split('').reverse().join(''))", "asdf"),
        ("javascript", "eval(String.fromCharCode(97, 0x62, 99))", "abc"),
        ("ruby", f"eval(Base64.decode64('{HELLO}'))", "puts 'hello there'"),
        ("php", f"eval(gzinflate(base64_decode('{HELLO}')));", "puts 'hello there'"),
        ("php", "<?php eval(str_rot13('nopq'));", "abcd"),
        ("perl", f"eval decode_base64('{HELLO}');", "puts 'hello there'"),
        (
            "powershell",
            f"iex ([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('{HELLO}')))",
            "puts 'hello there'",
        ),
    ],
)
def test_decoded_text_that_runs_is_read_and_said(language: str, code: str, inner: str) -> None:
    assert read(language, code) == ([(language, inner)], ["decoded-code-run"])


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("javascript", "spawn(command, args)"),
        ("javascript", "regex.exec('a b c d')\nconst execute = (a) => a"),
        ("php", "<?php echo base64_decode('YQ==');"),
        ("go", 'fmt.Println("curl x | sh")'),
        ("rust", "fn f() { let c = Command::new(program); }"),
        ("perl", "print 'curl x | sh';"),
    ],
)
def test_what_does_not_run_a_constant_is_left_alone(language: str, code: str) -> None:
    found, signs = read(language, code)
    assert [text for name, text in found if name == "shell" and "|" in text] == []
    assert signs == []


TOO_MUCH = ("(" * LONGEST, "'\"`" * 30_000, "a = a + a\n" * 10_000, "${" * 40_000, "\0\ud800" * 10, "f(" * 40_000, "")


@pytest.mark.parametrize("language", ["javascript", "ruby", "php", "go", "csharp", "rust", "powershell"])
@pytest.mark.parametrize("code", TOO_MUCH)
def test_no_text_is_too_much_for_a_grammar(language: str, code: str) -> None:
    assert has_grammar(language)
    read(language, code)


def test_no_text_is_too_much_for_the_grammar_of_perl() -> None:
    # In a process of its own, as every scan is: it keeps hundreds of megabytes of such texts until its process ends.
    program = f"from {__name__} import *\nfor code in TOO_MUCH:\n    read('perl', code)\nassert has_grammar('perl')"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
