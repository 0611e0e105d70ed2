"""Timing on a machine that others use too: one run at a time, high priority, one thread per CPU, rounds interleaved.

Two threads on two CPUs are measured rightly only when nothing else takes a CPU from either of them: one of two
spin-waiting threads that is pre-empted stalls both. So a measured process gets a session and with it a scheduler
group of its own, at the highest weight (real-time priority would lose 5 % of every second to the kernel's throttle),
its busiest threads are pinned to different CPUs, and a lock keeps a second bench away. What waiting for a CPU was
left is reported as `waited`.
"""

import contextlib
import datetime
import fcntl
import json
import os
import platform
import select
import statistics
import subprocess
import tempfile
import time

CPUS = sorted(os.sched_getaffinity(0))


def cpus_for(threads):
    """The CPUs of this many threads."""
    return set(CPUS[:threads])


def _write(path, text):
    try:
        with open(path, "w") as f:
            f.write(text)
        return True
    except OSError:
        return False


def _raise_priority():
    """For a process that leads a session of its own: 99 % of a CPU that others want too."""
    _write("/proc/self/autogroup", "-20")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def priority():
    """How measured processes are protected, in words."""
    return "processes at the highest priority" if os.geteuid() == 0 else "no right to raise priorities"


def spawn(command, threads, env=None, **popen):
    """Starts a process to be measured."""
    cpus = cpus_for(threads)

    def before_exec():
        os.sched_setaffinity(0, cpus)
        _raise_priority()

    merged = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true", TOKENIZERS_PARALLELISM="false")
    if threads > 1:
        merged["OMP_PLACES"] = ",".join(f"{{{c}}}" for c in sorted(cpus))
    merged.update(env or {})
    return subprocess.Popen(
        [str(c) for c in command], env=merged, preexec_fn=before_exec, start_new_session=True, text=True, **popen
    )


def _thread_times(pid):
    """Thread id -> (ns on a CPU, ns waiting for one)."""
    out = {}
    with contextlib.suppress(OSError):
        for t in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = open(f"/proc/{pid}/task/{t}/schedstat").read().split()
                out[t] = int(words[0]), int(words[1])
    return out


class Pinner:
    """Keeps the busiest threads of a process on CPUs of their own; call `step` every few milliseconds."""

    def __init__(self, pid, threads):
        self.pid, self.threads, self.steady, self.pinned, self.next = pid, threads, 0, {}, 0.0
        self.last = _thread_times(pid)
        for thread in self.last:
            self._set(thread, cpus_for(threads))

    @staticmethod
    def _set(thread, cpus):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), cpus)

    def step(self):
        if self.threads < 2 or time.monotonic() < self.next:
            return
        now = _thread_times(self.pid)
        spent = {t: v[0] - self.last.get(t, (0, 0))[0] for t, v in now.items()}
        self.last = now
        self.next = time.monotonic() + (0.1 if self.steady > 3 else 0.01)
        busy = sorted(spent, key=lambda t: -spent[t])[: self.threads]
        if len(busy) < self.threads or min(spent[t] for t in busy) < 2e6:
            return
        if set(busy) == set(self.pinned):
            self.steady += 1
            return
        for thread in now:  # one that was made by a pinned thread inherited its CPU
            self._set(thread, cpus_for(self.threads))
        self.pinned = dict(zip(sorted(busy, key=int), sorted(cpus_for(self.threads))))
        for thread, cpu in self.pinned.items():
            self._set(thread, {cpu})


class Worker:
    """A process that answers each line with one JSON line and sleeps between them."""

    def __init__(self, command, threads, env=None):
        self.threads = threads
        self.process = spawn(command, threads, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hello = self._read(120)

    def _read(self, timeout, pinner=None):
        out, end = self.process.stdout, time.monotonic() + timeout
        while True:
            if select.select([out], [], [], 0.01 if pinner else 1.0)[0]:
                line = out.readline()
                if not line:
                    raise RuntimeError(f"{self.process.args[0]} ... ended with status {self.process.wait()}")
                if line.startswith("{"):
                    return json.loads(line)
            elif time.monotonic() > end:
                self.process.kill()
                raise RuntimeError(f"{' '.join(self.process.args)} gave no answer within {timeout} s")
            if pinner:
                pinner.step()

    def ask(self, **request):
        return self.ask_line(json.dumps(request))

    def ask_line(self, line):
        before = _thread_times(self.process.pid)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        start = time.monotonic()
        reply = self._read(300, Pinner(self.process.pid, self.threads))
        reply["waited"] = waited(before, _thread_times(self.process.pid), time.monotonic() - start)
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def waited(before, after, wall):
    """The share of the wall-clock time that the unluckiest thread wanted a CPU and had none."""
    return max((after[t][1] - before.get(t, (0, 0))[1] for t in after), default=0) / 1e9 / wall


def run_json(command, threads, env=None):
    """Runs a program that prints JSON lines; a list of objects."""
    p = spawn(command, threads, env, stdout=subprocess.PIPE)
    pinner, last, start, lines = Pinner(p.pid, threads), {}, time.monotonic(), []
    buffer = ""
    while True:
        if select.select([p.stdout], [], [], 0.01)[0]:
            chunk = os.read(p.stdout.fileno(), 65536).decode()
            if not chunk:
                break
            buffer += chunk
        pinner.step()
        last = _thread_times(p.pid) or last
    if p.wait() != 0:
        raise RuntimeError(f"{' '.join(p.args)} ended with status {p.returncode}")
    lines = [json.loads(line) for line in buffer.splitlines() if line.startswith("{")]
    for line in lines:
        line["waited"] = waited({}, last, time.monotonic() - start)
    return lines


@contextlib.contextmanager
def alone():
    """Holds the lock that benches of this machine share."""
    with open(os.path.join(tempfile.gettempdir(), "bench.lock"), "a") as f:
        # The driver keeps its usual priority: a real-time one can wait inside the kernel for a thread that it keeps off
        # the CPU.
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def median(values):
    return statistics.median(values)


def machine():
    """Date and CPU in one line."""
    model, names = platform.machine(), {}
    with contextlib.suppress(OSError):
        for line in open("/proc/cpuinfo"):
            key, _, value = line.partition(":")
            names.setdefault(key.strip(), value.strip())
        model = f"{names['model name']} (family {names['cpu family']}, model {names['model']})"
    load = os.getloadavg()[0]
    return f"{datetime.date.today().isoformat()}, {model}, {len(CPUS)} CPUs, load {load:.0f} by others, {priority()}"
