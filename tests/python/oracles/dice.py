"""Random choices that are the same on every machine and Python: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""

_MASK = (1 << 64) - 1


class Dice:
    """Draws from a seed."""

    def __init__(self, seed):
        self._state = seed & _MASK

    def bits(self):
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n):
        """An integer in [0, n)."""
        return self.bits() % n

    def between(self, low, high):
        """An integer in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent):
        return self.below(100) < percent

    def unit(self):
        """In (0, 1)."""
        return ((self.bits() >> 11) + 0.5) * 2.0**-53

    def pick(self, items):
        return items[self.below(len(items))]

    def sample(self, items, count):
        """`count` different items, in their order."""
        left = list(range(len(items)))
        chosen = [left.pop(self.below(len(left))) for _ in range(count)]
        return [items[i] for i in sorted(chosen)]

    def shuffled(self, items):
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]


class HypothesisDice(Dice):
    """The same choices drawn by hypothesis, so that it can shrink them: smaller draws are simpler."""

    def __init__(self, data):
        super().__init__(0)
        self._data = data

    def below(self, n):
        from hypothesis import strategies as st

        return self._data.draw(st.integers(0, n - 1)) if n > 1 else 0

    def bits(self):
        from hypothesis import strategies as st

        return self._data.draw(st.integers(0, _MASK))

    def unit(self):
        return (self.below(1 << 16) + 0.5) * 2.0**-16
