"""Timing on a shared machine: one run at a time, high priority, n CPUs for n threads, interleaved rounds.

A measured process gets its own session, and with it its own scheduler group at the highest weight (real-time priority
would lose 5 % of every second to the kernel's throttle). Its affinity is the n CPUs of its n threads. A lock keeps a
second bench away. Single threads are not pinned from outside: a thread inherits the CPUs of its creator, and a library
that counts its CPUs while its main thread is pinned to one of them starts one worker. `ThreadUse` compares the threads
that each engine was asked for with the CPU time that it used. The remaining time of waiting for a CPU is reported as
`waited`.
"""

import collections
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

from child import Failure

CPUS = sorted(os.sched_getaffinity(0))


def cpus_for(threads):
    """The CPUs for this many threads."""
    return set(CPUS[:threads])


def _write(path, text):
    try:
        with open(path, "w") as f:
            f.write(text)
        return True
    except OSError:
        return False


def _raise_priority():
    """Raises the weight of the session that this process leads: 99 % of a CPU that other processes want too."""
    _write("/proc/self/autogroup", "-20")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def priority():
    """How measured processes are isolated, in words."""
    return "processes at the highest priority" if os.geteuid() == 0 else "no right to raise priorities"


def spawn(command, threads, env=None, openmp=False, **popen):
    """Starts a process to be measured. openmp: its only threads are OpenMP's, each of which is bound to a CPU."""
    cpus = cpus_for(threads)

    def before_exec():
        os.sched_setaffinity(0, cpus)
        _raise_priority()

    merged = dict(os.environ, OMP_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="false")
    for name in ("OMP_PROC_BIND", "OMP_PLACES"):  # they would bind the main thread and its threads to a CPU
        merged.pop(name, None)
    if openmp:
        merged |= {"OMP_PROC_BIND": "true", "OMP_PLACES": ",".join(f"{{{c}}}" for c in sorted(cpus))}
    merged.update(env or {})
    return subprocess.Popen(
        [str(c) for c in command], env=merged, preexec_fn=before_exec, start_new_session=True, text=True, **popen
    )


def cpu_seconds(pid):
    """CPU time of all threads of a process so far, including threads that have ended."""
    clock = (~pid << 3) | 2  # the CPU clock of another process on Linux
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0


def _thread_times(pid):
    """Thread id -> (ns on a CPU, ns waiting for one)."""
    out = {}
    with contextlib.suppress(OSError):
        for t in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/task/{t}/schedstat") as f:
                    words = f.read().split()
                out[t] = int(words[0]), int(words[1])
    return out


class ThreadUse:
    """Checks that engines with n threads used the CPU time of n CPUs where their work is parallel.

    `cpus` of a measured section is its CPU time over its wall time. An engine that waits on the wall and not on a CPU,
    that was pinned to one CPU, or that was never given its threads shows here, and its figure of n threads is none.
    """

    LEAST = 0.75  # of n; the rest is serial work and other load on the machine

    def __init__(self):
        self.seen = collections.defaultdict(list)

    def add(self, engine, threads, case, cpus, wait=0.0):
        self.seen[engine, threads, case].append((cpus, wait))

    def problems(self):
        """A line for each engine and case whose median round used too few CPUs."""
        out = []
        for (engine, threads, case), rounds in self.seen.items():
            cpus, wait = (statistics.median(column) for column in zip(*rounds))
            if not cpus >= self.LEAST * threads:
                note = f"; a thread waited for a CPU for {wait:.0%} of the time" if wait >= 0.05 else ""
                out.append(f"{engine} was asked for {threads} threads and used {cpus:.2f} CPUs ({case}{note})")
        return out

    def finish(self):
        """Prints the problems. Returns whether there are none."""
        found = self.problems()
        for line in found:
            print(f"NOT PARALLEL {line}", flush=True)
        return not found


class Worker:
    """A process that answers each line with one JSON line and sleeps between them.

    An answer has `cpus`, the CPU time over the wall time: of the measured section where the process says so, else of
    the whole request.
    """

    def __init__(self, command, threads, env=None, openmp=False):
        self.threads = threads
        self.process = spawn(command, threads, env, openmp, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hello = self._read(300)

    def _read(self, timeout):
        out, end = self.process.stdout, time.monotonic() + timeout
        while True:
            if select.select([out], [], [], 1.0)[0]:
                line = out.readline()
                if not line:
                    ended(self.process)
                if line.startswith("{"):
                    return json.loads(line)
            elif time.monotonic() > end:
                self.process.kill()
                raise Failure(f"{words(self.process)} gave no answer within {timeout} s")

    def ask(self, **request):
        return self.ask_line(json.dumps(request))

    def ask_line(self, line):
        pid = self.process.pid
        before, cpu, start = _thread_times(pid), cpu_seconds(pid), time.monotonic()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            ended(self.process)
        reply = self._read(300)
        wall = time.monotonic() - start
        reply["waited"] = waited(before, _thread_times(pid), wall)
        reply.setdefault("cpus", (cpu_seconds(pid) - cpu) / wall)
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def words(process):
    return " ".join(map(str, process.args))


def ended(process):
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # a request that was not sent
            if pipe:
                pipe.close()
    raise Failure(f"{words(process)} ended with status {process.wait()}; what it said stands above")


def waited(before, after, wall):
    """The largest share of wall-clock time that a thread waited for a CPU."""
    return max((after[t][1] - before.get(t, (0, 0))[1] for t in after), default=0) / 1e9 / wall


def run_json(command, threads, env=None, openmp=False):
    """Runs a program that prints JSON lines; a list of objects, each with `waited` and `cpus` as Worker's answers."""
    p = spawn(command, threads, env, openmp, stdout=subprocess.PIPE)
    last, start, buffer = {}, time.monotonic(), ""
    while True:
        if select.select([p.stdout], [], [], 0.1)[0]:
            chunk = os.read(p.stdout.fileno(), 65536).decode()
            if not chunk:
                break
            buffer += chunk
        last = _thread_times(p.pid) or last
    p.stdout.close()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if p.returncode != 0:
        ended(p)
    lines = [json.loads(line) for line in buffer.splitlines() if line.startswith("{")]
    if not lines:
        raise Failure(f"{words(p)} printed no figures")
    for line in lines:
        line["waited"] = waited({}, last, wall)
        line.setdefault("cpus", (used.ru_utime + used.ru_stime) / wall)
    return lines


def run_text(command, threads=1, env=None):
    """Runs a program and returns its output."""
    p = spawn(command, threads, env, stdout=subprocess.PIPE)
    out = p.communicate()[0]
    if p.returncode != 0:
        ended(p)
    return out


@contextlib.contextmanager
def alone():
    """Holds the lock that all benches of this machine share."""
    with open(os.path.join(tempfile.gettempdir(), "bench.lock"), "a") as f:
        # The driver keeps its normal priority. A real-time driver could wait in the kernel for a thread that it keeps
        # off the CPU.
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def median(values):
    return statistics.median(values)


def machine():
    """The date and the CPU, in one line."""
    model, names = platform.machine(), {}
    with contextlib.suppress(OSError):
        for line in open("/proc/cpuinfo"):
            key, _, value = line.partition(":")
            names.setdefault(key.strip(), value.strip())
        model = f"{names['model name']} (family {names['cpu family']}, model {names['model']})"
    load = os.getloadavg()[0]
    return f"{datetime.date.today().isoformat()}, {model}, {len(CPUS)} CPUs, load {load:.0f} by others, {priority()}"
