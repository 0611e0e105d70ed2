"""CPU utilization of the measured sections of a peer: CPU time of all threads over wall time."""

import time


class CpuUse:
    def __init__(self):
        self.reset()

    def reset(self):
        """Discards the times of the warm-up."""
        self.cpu = self.wall = 0.0

    def timed(self, section):
        """Runs a section. Returns its result and its milliseconds."""
        cpu, start = time.process_time(), time.perf_counter()
        out = section()
        seconds = time.perf_counter() - start
        self.cpu += time.process_time() - cpu
        self.wall += seconds
        return out, seconds * 1e3

    def cpus(self):
        return self.cpu / self.wall if self.wall else 0.0
