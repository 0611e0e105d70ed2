"""Measured processes: the CPUs that they may use, those that they did use, and what a failure says."""

import contextlib
import io
import sys
import unittest

import bench_tools  # noqa: F401  (finds the modules of bench/peers)

import timing
from child import Failure

# A peer that is asked for two threads and computes in one, for the CPU time that a request says.
ONE_THREAD = """
import json, sys, time
print(json.dumps({"version": "one thread"}), flush=True)
for line in sys.stdin:
    end = time.process_time() + float(line)
    while time.process_time() < end:
        pass
    print(json.dumps({"p50_us": 1}), flush=True)
"""
# Its main thread works, then another one is made and tells the CPUs that it may use.
LATE_THREAD = """
import json, os, sys, threading, time
def work():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
work()
found = []
late = threading.Thread(target=lambda: found.extend(sorted(os.sched_getaffinity(0))))
late.start(); late.join()
print(json.dumps({"cpus_allowed": found, "proc_bind": os.environ.get("OMP_PROC_BIND", "")}), flush=True)
"""


def python(text):
    return [sys.executable, "-c", text]


class Threads(unittest.TestCase):
    def test_a_peer_that_does_not_use_its_threads_is_named(self):
        use, worker = timing.ThreadUse(), timing.Worker(python(ONE_THREAD), 2)
        for _ in range(3):
            reply = worker.ask_line("0.2")
            use.add("lazy peer", 2, "8x32", reply["cpus"], reply["waited"])
        worker.close()
        self.assertLess(reply["cpus"], 1.2)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertFalse(use.finish())
        self.assertRegex(printed.getvalue(), r"NOT PARALLEL lazy peer was asked for 2 threads and used [01]\.\d+ CPUs")
        self.assertIn("8x32", printed.getvalue())

    def test_the_same_of_a_process_that_ends(self):
        once = "import time\nwhile time.process_time() < 0.3: pass\nprint('{\"p50_us\": 1}')"
        reply = timing.run_json(python(once), 2)[0]
        self.assertLess(reply["cpus"], 1.2)
        self.assertGreater(reply["cpus"], 0)

    def test_what_a_peer_says_of_its_section_counts(self):
        reply = timing.run_json(python("print('{\"p50_us\": 1, \"cpus\": 1.97}')"), 2)[0]
        self.assertEqual(reply["cpus"], 1.97)

    def test_peers_that_use_their_threads_are_not_named(self):
        use = timing.ThreadUse()
        use.add("one", 1, "a", 0.97)
        use.add("two", 2, "a", 1.9)
        for cpus in (1.9, 0.2, 1.8):  # others took the CPU in one round
            use.add("two", 2, "b", cpus)
        self.assertTrue(use.finish())

    def test_each_case_counts_by_its_median(self):
        use = timing.ThreadUse()
        use.add("peer", 2, "large", 1.95)
        for cpus in (1.0, 1.1, 1.9):
            use.add("peer", 2, "small", cpus, wait=0.4)
        self.assertEqual(
            use.problems(),
            ["peer was asked for 2 threads and used 1.10 CPUs (small; a thread waited for a CPU for 40% of the time)"],
        )

    def test_no_figure_is_no_use(self):
        use = timing.ThreadUse()
        use.add("peer", 1, "a", float("nan"))
        self.assertEqual(len(use.problems()), 1)


class Affinity(unittest.TestCase):
    """A thread that is made late may use all CPUs of the process: a pinned creator would hand it one of these."""

    def test_late_threads_have_all_cpus(self):
        reply = timing.run_json(python(LATE_THREAD), 2, {})[0]
        self.assertEqual(reply["cpus_allowed"], sorted(timing.cpus_for(2)))
        self.assertEqual(reply["proc_bind"], "")

    def test_openmp_is_bound_where_it_is_asked_for(self):
        self.assertEqual(timing.run_json(python(LATE_THREAD), 2, openmp=True)[0]["proc_bind"], "true")


class Failures(unittest.TestCase):
    def test_a_worker_that_ends(self):
        with self.assertRaisesRegex(Failure, "ended with status 3"):
            timing.Worker(python("import sys; sys.exit(3)"), 1)

    def test_a_worker_that_ends_in_a_request(self):
        worker = timing.Worker(python("import sys; print('{}', flush=True); input(); sys.exit(4)"), 1)
        with self.assertRaisesRegex(Failure, "ended with status 4"):
            worker.ask_line("go")

    def test_a_program_that_fails_and_one_that_prints_nothing(self):
        with self.assertRaisesRegex(Failure, "ended with status 5"):
            timing.run_json(python("import sys; sys.exit(5)"), 1)
        with self.assertRaisesRegex(Failure, "printed no figures"):
            timing.run_json(python("pass"), 1)


if __name__ == "__main__":
    unittest.main()
