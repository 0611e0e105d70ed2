// Random reshapes, transposes, slices and concatenations.
#include <algorithm>
#include <utility>

#include "tests/support/random_generator.h"

namespace rlx::test {

void Generator::reshape() {
  const Expr x = pick_any();
  switch (dice_.below(6)) {
    case 0: keep(g_.reshape(x, {-1})); return;
    case 1: {  // two axes joined
      if (x.rank() < 2) return;
      Dims dims = x.shape().dims();
      const auto at = static_cast<std::size_t>(dice_.below(x.rank() - 1));
      dims[at] = dims[at] * dims[at + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      keep(g_.reshape(x, dims));
      return;
    }
    case 2: {  // one axis split
      Dims dims = x.shape().dims();
      if (dims.empty()) return;
      const auto at = static_cast<std::size_t>(axis_of(x));
      for (std::int64_t part : {2, 3, 7, 11}) {
        const auto rest = exact_div(dims[at], Dim(part));
        if (!rest) continue;
        dims[at] = *rest;
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at) + dice_.below(2), Dim(part));
        keep(g_.reshape(x, dims));
        return;
      }
      return;
    }
    case 3: keep(g_.unsqueeze(x, dice_.below(x.rank() + 1))); return;
    case 4: {
      for (std::int64_t a = 0; a < x.rank(); ++a)
        if (x.dim(static_cast<int>(a)).is_static(1)) {
          keep(g_.squeeze(x, a));
          return;
        }
      return;
    }
    default: {
      Dims dims = x.shape().dims();
      for (Dim& d : dims)
        if (d.is_static(1)) d = random_dim();
      if (dice_.chance(40)) dims.insert(dims.begin(), random_dim());
      if (elements(dims) <= options_.max_elements) keep(g_.expand(x, dims));
    }
  }
}

void Generator::move() {
  const Expr x = pick_any(1);
  const std::int64_t axis = axis_of(x);
  const Dim extent = x.dim(static_cast<int>(axis));
  switch (dice_.below(5)) {
    case 0: {
      std::vector<std::int64_t> perm(static_cast<std::size_t>(x.rank()));
      for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
      for (std::size_t i = perm.size(); i-- > 1;)
        std::swap(perm[i], perm[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(i) + 1))]);
      keep(g_.transpose(x, perm));
      return;
    }
    case 1: keep(g_.reverse(x, axes_of(x))); return;
    case 2: {
      Dims starts, limits;
      std::vector<std::int64_t> strides;
      for (const Dim& d : x.shape().dims()) {
        const std::int64_t n = d.is_static() ? d.value() : 0;
        const std::int64_t start = n > 0 ? dice_.below(std::min<std::int64_t>(n, 3)) : 0;
        starts.emplace_back(start);
        limits.push_back(d.is_static() ? Dim(start + dice_.below(n - start + 1)) : d);
        strides.push_back(dice_.chance(60) ? 1 : 1 + dice_.below(4));
      }
      keep(g_.slice(x, starts, limits, strides));
      return;
    }
    case 3: {
      if (!extent.is_static()) return;
      const std::int64_t start = dice_.below(extent.value() + 1);
      keep(g_.narrow(x, axis, start, dice_.below(extent.value() - start + 1)));
      return;
    }
    default: {
      std::vector<std::int64_t> low, high, interior;
      for (int i = 0; i < x.rank(); ++i) {
        low.push_back(dice_.below(4) - 1), high.push_back(dice_.below(4) - 1), interior.push_back(dice_.below(4) / 2);
        // A crop leaves at least something; a symbol is at least 1.
        const std::int64_t most = x.shape().dim(i).is_static() ? x.shape().dim(i).value() : 1;
        if (most < 1) high.back() = std::max<std::int64_t>(high.back(), 0);
        if (most < 1 || (most < 2 && high.back() < 0)) low.back() = std::max<std::int64_t>(low.back(), 0);
      }
      keep(g_.pad(x, low, high, static_cast<double>(dice_.below(5)) - 2, interior));
    }
  }
}

void Generator::join() {
  const Expr x = pick_any(1);
  std::vector<Expr> parts{x};
  for (std::int64_t i = dice_.below(3); i-- > 0;) {
    const Expr y = pick([&](const Expr& e) { return e.shape() == x.shape(); });
    parts.push_back(y.valid() ? y : leaf(x.shape()));
  }
  keep(g_.concat(parts, axis_of(x)));
}

}  // namespace rlx::test
