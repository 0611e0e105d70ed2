"""The check of a generator's distribution: sound generators pass, each fault is found."""

import unittest

from bench_tools import HAS_NUMPY, needs_numpy

if HAS_NUMPY:
    import numpy as np

    import distribution

N = 1 << 18


@needs_numpy
class Distribution(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(1)

    def bits(self, n=N):
        return self.rng.integers(0, 2**32, n, dtype=np.uint32)

    def test_sound_generators(self):
        self.assertEqual(distribution.faults(self.bits(), "bits"), [])
        self.assertEqual(distribution.faults(self.rng.random(N, dtype=np.float32), "uniform"), [])
        self.assertEqual(distribution.faults(self.rng.standard_normal(N, dtype=np.float32), "normal"), [])

    def assert_fault(self, y, kind, words):
        found = distribution.faults(y, kind)
        self.assertTrue(any(words in fault for fault in found), f"{found} do not say '{words}'")

    def test_numbers_of_64_bits(self):
        self.assert_fault(self.rng.integers(0, 2**63, N, dtype=np.uint64), "bits", "numbers of uint64")

    def test_a_bit_that_is_always_set(self):
        self.assert_fault(self.bits() | np.uint32(1 << 5), "bits", "bit 5 is set in 100")

    def test_a_short_period(self):
        self.assert_fault(np.tile(self.bits(N // 2), 2), "bits", "come twice")

    def test_numbers_in_order(self):
        self.assert_fault(np.sort(self.bits()), "bits", "neighbours correlate")

    def test_one_is_no_number_of_the_interval(self):
        y = self.rng.random(N)
        y[7] = 1
        self.assert_fault(y, "uniform", "not of [0, 1)")

    def test_another_distribution(self):
        self.assert_fault(self.rng.random(N) ** 1.02, "uniform", "Kolmogorov")
        self.assert_fault(self.rng.standard_normal(N) * 1.03, "normal", "Kolmogorov")
        self.assert_fault(np.clip(self.rng.standard_normal(N), -2, 2), "normal", "Kolmogorov")

    def test_numbers_that_are_not_finite(self):
        y = self.rng.standard_normal(N)
        y[3] = np.nan
        self.assert_fault(y, "normal", "not finite")

    def test_whole_numbers_for_real_ones(self):
        self.assert_fault(self.bits(), "uniform", "not of a float type")


if __name__ == "__main__":
    unittest.main()
