"""Helper processes of a bench that are not measured, and errors that show their output."""

import subprocess

LINES = 40  # of the output of a failed process


class Failure(SystemExit):
    """An error for the user of a bench. If it is not caught, the program ends with its message and status 1."""

    def __init__(self, message):
        super().__init__(f"error: {message}")


def run(what, command, **popen):
    """Runs a command quietly and returns its output. If it fails, raises Failure with the output."""
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
    """Raises Failure if a file is missing; the message has the command that makes it."""
    if not path.exists():
        raise Failure(f"{path} is missing; {way_out}")


def need_target(path, target):
    """Raises Failure if a program of the release build is missing."""
    need(path, f"cmake --preset release && cmake --build --preset release --target {target}")
