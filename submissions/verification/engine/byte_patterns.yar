// Patterns of bytes in files that are no text. `finds` names the rule of rules.toml that a match is a sign of, and
// `says` what stands there. Those marked `pickled` are looked for only where a file may hold pickled objects.

rule pickled_call {
  meta:
    finds = "data-runs-code"
    says = "a pickled object calls a function that runs commands or code"
    pickled = true
  strings:
    // The opcode GLOBAL with a module and a name, of protocols 0 to 3.
    $global = /c(os|posix|nt|subprocess|builtins|__builtin__|commands|pty|runpy|importlib|code|platform|socket)\n(system|popen[234]?|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec[vl]?[pe]{0,2}|spawn[vl]?[pe]{0,2}|eval|execfile|compile|__import__|import_module|run_path|run_module|_run_code|InteractiveInterpreter|create_connection)\n/
    // STACK_GLOBAL of protocol 4 and later takes both from strings; the module may have been named and kept before.
    $module = /\x8c[\x02-\x0c](os|posix|nt|subprocess|builtins|__builtin__|pty|runpy|importlib|code|platform|socket)/
    $stack = /\x8c[\x03-\x16](system|popen|Popen|run|call|check_call|check_output|getoutput|exec[vl]?[pe]{0,2}|spawn[vl]?[pe]{0,2}|eval|compile|__import__|import_module|run_path|run_module|_run_code|InteractiveInterpreter|create_connection)\x94?\x93/
  condition:
    $global or ($module and $stack)
}

rule appended_to_picture {
  meta:
    finds = "picture-carries-more"
    says = "an archive, a program or a script follows the end of a picture"
  strings:
    $png = { 49 45 4E 44 AE 42 60 82 [0-32] (50 4B 03 04 | 7F 45 4C 46 | 1F 8B 08 | 4D 5A 90 00 | 23 21 2F) }
    $jpeg = { FF D9 [0-32] (50 4B 03 04 | 7F 45 4C 46 | 1F 8B 08 | 4D 5A 90 00 | 23 21 2F) }
    $gif = { 00 3B [0-32] (50 4B 03 04 | 7F 45 4C 46 | 1F 8B 08 | 4D 5A 90 00 | 23 21 2F) }
  condition:
    (uint32be(0) == 0x89504E47 and $png) or (uint16be(0) == 0xFFD8 and $jpeg) or (uint32be(0) == 0x47494638 and $gif)
}

private rule program {
  condition:
    uint32be(0) == 0x7F454C46 or uint16be(0) == 0x4D5A or uint32be(0) == 0xCFFAEDFE or uint32be(0) == 0xCEFAEDFE or
    uint32be(0) == 0xCAFEBABE or uint32be(0) == 0x0061736D
}

rule packed_program {
  meta:
    finds = "program-packed"
    says = "a program is packed with UPX"
  strings:
    $mark = "UPX!"
    $section = "UPX0"
  condition:
    program and ($mark or $section)
}

rule mining_program {
  meta:
    finds = "miner"
    says = "a program knows the protocol of mining pools"
  strings:
    $protocol = /stratum\+(tcp|ssl|tls):\/\//
    $job = "\"mining.subscribe\""
    $wallet = "--donate-level"
  condition:
    program and any of them
}

rule shell_of_program {
  meta:
    finds = "reverse-shell"
    says = "a program opens a shell to an address"
  strings:
    $tcp = /(ba)?sh -i\s?[<>&0-9]{1,6}\s?[>&]{1,2}\s?\/dev\/tcp\//
    $nc = /\bnc(at)? (-[a-z]{1,4} ){0,3}-e \/bin\/(ba)?sh/
    $mkfifo = /mkfifo \/tmp\/[a-z0-9]{1,12};\s?cat \/tmp\/[a-z0-9]{1,12}\s?\|\s?\/bin\/(ba)?sh -i/
  condition:
    program and any of them
}

rule program_sends_to_drop {
  meta:
    finds = "data-to-drop"
    says = "a program holds the address of a catcher of requests or of a bot"
  strings:
    $hook = /discord(app)?\.com\/api\/webhooks\/[0-9]{5,20}\/[\w-]{10,90}/
    $bot = /api\.telegram\.org\/bot[0-9]{5,14}:[\w-]{20,60}/
    $catcher = /\b(webhook\.site\/[0-9a-f-]{16,40}|[a-z0-9]{5,30}\.(burpcollaborator\.net|oastify\.com|interact\.sh|oast\.(fun|pro|live|me)))/
  condition:
    program and any of them
}
