"""Ask every http address in some Markdown files once, and print the ones that do not answer with success."""

import re
import sys
import urllib.error
import urllib.request

ADDRESS = re.compile(r"https?://[^\s)>\]\"']+")


def ask(address):
    """Return the status that a server answers with, or the reason why none came."""
    request = urllib.request.Request(address, method="HEAD", headers={"User-Agent": "link-check"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return error


def main():
    """Check each file named, and end with 1 if any link is broken."""
    broken = 0
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for address in ADDRESS.findall(line):
                    status = ask(address.rstrip(".,;"))
                    if status != 200:
                        broken += 1
                        print(f"{name}:{number}: {address}: {status}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
