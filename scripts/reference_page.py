"""The command line of the scripts that write a page of docs/ from the sources."""

import argparse


def write_reference(description, page, make):
    """Writes what `make` returns to the file `page`, or with --check says whether it is up to date. make() is
    (text, problems), and a problem is a line to print. Returns the exit status.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing: say whether the page is up to date")
    check = parser.parse_args().check
    text, problems = make()
    for problem in problems:
        print(problem)
    stale = not page.exists() or page.read_text() != text
    if stale and not check:
        page.write_text(text)
    if stale:
        print(("stale: " if check else "wrote ") + str(page.relative_to(page.parents[1])))
    return 1 if problems or check and stale else 0
