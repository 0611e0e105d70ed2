"""Processes that a bench starts beside those that it measures, and how it fails: with what the process said."""

import subprocess

LINES = 40  # of what a process said


class Failure(SystemExit):
    """Why a bench cannot go on, for its user: uncaught, it ends the program with this message and status 1."""

    def __init__(self, message):
        super().__init__(f"error: {message}")


def run(what, command, **popen):
    """Runs a command quietly and returns its output; when it fails, raises what it said."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **popen
        )
    except OSError as e:
        raise Failure(f"{what}: {command[0]} cannot be started: {e.strerror}") from None
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).splitlines()[-LINES:])
        raise Failure(f"{what} failed with status {done.returncode}: {' '.join(command)}\n{said or '  (no output)'}")
    return done.stdout


def need(path, way_out):
    """Ends the bench when a file is missing, with the command that makes it."""
    if not path.exists():
        raise Failure(f"{path} is missing; {way_out}")


def need_target(path, target):
    """The same of a program of the release build."""
    need(path, f"cmake --preset release && cmake --build --preset release --target {target}")
