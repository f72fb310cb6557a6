"""A git host on loopback that is reached by the real sshd, with keys made for the test."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
# As root sshd wants a folder to lock an unprivileged process into.
_EMPTY = Path("/run/sshd")


@dataclass
class SshHost:
    """The port, the files of keys, how many have connected, and what they had run; ``during`` is called for each."""

    folder: Path
    port: int
    connections: int = 0
    during: Callable[[], None] = lambda: None
    user: str = field(default_factory=getpass.getuser)

    @property
    def key_file(self) -> Path:
        return self.folder / "deploy"

    def known_hosts(self, name: str, key: str = "host") -> Path:
        """Write a file that pins the key of this host, or another ``key``, for a name."""
        path = self.folder / f"known_{name}_{key}"
        path.write_text(f"[{name}]:{self.port} {(self.folder / f'{key}.pub').read_text('ascii')}", "ascii")
        return path

    def commands(self) -> list[str]:
        log = self.folder / "commands"
        return log.read_text("utf-8").splitlines() if log.exists() else []


def _make_keys(folder: Path) -> None:
    for name in ("host", "other", "deploy", "stranger"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(made, check=True)


def _configure(folder: Path, root: Path, port: int) -> list[str]:
    serve = folder / "serve"
    serve.write_text(
        "#!/bin/sh\n"
        f'echo "$SSH_ORIGINAL_COMMAND" >>{shlex.quote(str(folder / "commands"))}\n'
        'eval "set -- $SSH_ORIGINAL_COMMAND"\n'
        f'[ $# = 2 ] && [ "$1" = git-upload-pack ] && exec git-upload-pack {shlex.quote(str(root))}"$2"\n',
        "utf-8",
    )
    serve.chmod(0o755)
    deploy = (folder / "deploy.pub").read_text("ascii")
    (folder / "authorized").write_text(f'restrict,command="{serve}" {deploy}', "ascii")
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        "AcceptEnv GIT_PROTOCOL\nPrintMotd no\n",
        "ascii",
    )
    return [str(SSHD), "-i", "-e", "-f", str(config)]


@contextmanager
def ssh_host(root: Path, folder: Path) -> Iterator[SshHost]:
    """Serve the bare repositories below ``root``; what the host needs is written into the new ``folder``."""
    folder.mkdir()
    if os.geteuid() == 0:
        _EMPTY.mkdir(mode=0o755, exist_ok=True)
    _make_keys(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = SshHost(folder, listener.getsockname()[1])
        command = _configure(folder, root, host.port)
        children: list[subprocess.Popen[bytes]] = []

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if listener.fileno() == -1 or connection.recv(1, socket.MSG_PEEK) == b"":
                        return
                    host.connections += 1
                    host.during()
                    with (folder / "log").open("ab") as log:
                        end = connection.fileno()
                        children.append(subprocess.Popen(command, stdin=end, stdout=end, stderr=log))

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield host
        finally:
            # A connection that says nothing tells the thread to end.
            socket.create_connection(listener.getsockname()).close()
            thread.join()
            for child in children:
                child.kill()
                child.wait()
