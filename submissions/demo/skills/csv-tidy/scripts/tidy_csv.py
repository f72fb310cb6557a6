"""Copy a CSV file, tidied: trimmed cells, one empty value, ISO dates, no empty columns. Prints what it changed."""

import csv
import re
import sys
from datetime import datetime

NOTHING = {"na", "n/a", "-", "null", "none"}
AMBIGUOUS = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}")
FORMATS = ("%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%Y.%m.%d")


def tidy(cell, report):
    """Return the cell as it should be, and count what was changed."""
    text = cell.strip()
    if text != cell:
        report["trimmed"] += 1
    if text.lower() in NOTHING:
        report["emptied"] += 1
        return ""
    found = AMBIGUOUS.fullmatch(text)
    if found and int(found[1]) <= 12 and int(found[2]) <= 12:
        report["ambiguous"] += 1
        return text
    for form in FORMATS:
        try:
            date = datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
        report["dates"] += 1
        return date
    return text


def main():
    """Read the first file named, write the second."""
    source, target = sys.argv[1:3]
    report = dict.fromkeys(("trimmed", "emptied", "dates", "ambiguous", "columns"), 0)
    with open(source, newline="", encoding="utf-8-sig") as file:
        dialect = csv.Sniffer().sniff(file.read(65536))
        file.seek(0)
        rows = [[tidy(cell, report) for cell in row] for row in csv.reader(file, dialect)]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    kept = [column for column in range(width) if any(row[column] for row in rows)]
    report["columns"] = width - len(kept)
    with open(target, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([row[column] for column in kept] for row in rows)
    print(f"{len(rows)} rows;", ", ".join(f"{count} {what}" for what, count in report.items()))


if __name__ == "__main__":
    main()
