// Einsum: parses the subscripts, chooses the order of contractions, and builds them as dots.
#include "rlx/functions/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx {
namespace {

using building::At;
// The axes of an operand: letters, and negative numbers for the axes of an ellipsis, of which -1 is the last.
using Axes = std::vector<int>;

[[noreturn]] void refuse_einsum(SourceLoc loc, const std::string& spec, const std::string& why,
                                ErrorCode code = ErrorCode::InvalidArgument) {
  building::fail(loc, code, concat_text("einsum '", spec, "': ", why));
}

struct EinsumTerms {
  std::vector<Axes> terms;
  Axes result;
};

bool holds(const Axes& axes, int name) { return std::find(axes.begin(), axes.end(), name) != axes.end(); }
std::int64_t place_in(const Axes& axes, int name) { return std::find(axes.begin(), axes.end(), name) - axes.begin(); }

EinsumTerms parse_einsum(const std::string& spec, const std::vector<int>& ranks, SourceLoc loc) {
  std::string text;
  for (char c : spec)
    if (c != ' ') text += c;
  const std::size_t arrow = text.find("->");
  std::vector<std::string> left{""};
  for (char c : text.substr(0, arrow)) {
    if (c == ',')
      left.emplace_back();
    else
      left.back() += c;
  }
  if (left.size() != ranks.size())
    refuse_einsum(loc, spec, concat_text("names ", left.size(), " operands, got ", ranks.size()));
  int dots = 0;  // the largest number of axes of an ellipsis
  const auto spelled = [&](std::string term, std::optional<int> rank) {
    Axes out;
    const std::size_t at = term.find("...");
    const int letters = static_cast<int>(term.size()) - (at == std::string::npos ? 0 : 3);
    const int hidden = at == std::string::npos ? 0 : rank ? *rank - letters : dots;
    if (rank && (hidden < 0 || letters + hidden != *rank))
      refuse_einsum(loc, spec, concat_text("the term '", term, "' does not match an operand with ", *rank, " axes"),
                    ErrorCode::ShapeMismatch);
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == at) {
        for (int k = hidden; k > 0; --k) out.push_back(-k);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        out.push_back(term[i]);
      } else {
        refuse_einsum(loc, spec, concat_text("'", term[i], "' is not the letter of an axis"));
      }
    }
    if (rank) dots = std::max(dots, hidden);
    return out;
  };
  EinsumTerms out;
  std::map<int, int> count;
  for (std::size_t i = 0; i < left.size(); ++i) {
    out.terms.push_back(spelled(left[i], ranks[i]));
    for (int name : out.terms.back()) ++count[name];
  }
  if (arrow != std::string::npos) {
    out.result = spelled(text.substr(arrow + 2), std::nullopt);
    for (int name : out.result)
      if (std::count(out.result.begin(), out.result.end(), name) > 1 || (name > 0 && !count.contains(name)))
        refuse_einsum(
            loc, spec,
            concat_text("axis '", static_cast<char>(name), "' of the result is listed twice, or is in no operand"));
  } else {
    for (int k = dots; k > 0; --k) out.result.push_back(-k);
    for (const auto& [name, times] : count)
      if (name > 0 && times == 1) out.result.push_back(name);
  }
  return out;
}

// The extent of each axis. Unknown extents count as large.
std::map<int, double> extents_of(const std::string& spec, const std::vector<Axes>& terms, const std::vector<Dims>& dims,
                                 SourceLoc loc) {
  std::map<int, double> out;
  std::map<int, Dim> known;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t k = 0; k < terms[i].size(); ++k) {
      const Dim& d = dims[i][k];
      const int name = terms[i][k];
      if (!d.is_static(1)) {
        const auto [it, fresh] = known.emplace(name, d);
        if (!fresh && !(it->second == d))
          refuse_einsum(loc, spec,
                        concat_text("axis '", name > 0 ? std::string(1, static_cast<char>(name)) : "...", "' has both ",
                                    it->second, " and ", d, " entries"),
                        ErrorCode::ShapeMismatch);
      }
      out[name] = std::max(out[name], d.is_static() ? static_cast<double>(d.value()) : 1048576.0);
    }
  return out;
}

// The axes that the result or operands other than i and j still need.
std::set<int> needed(const std::vector<Axes>& terms, const Axes& result, std::size_t i, std::size_t j) {
  std::set<int> out(result.begin(), result.end());
  for (std::size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) out.insert(terms[k].begin(), terms[k].end());
  return out;
}

std::pair<std::size_t, std::size_t> cheapest(const std::vector<Axes>& terms, const Axes& result,
                                             const std::map<int, double>& extents) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  std::pair<double, double> least{HUGE_VAL, HUGE_VAL};
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      std::set<int> both(terms[i].begin(), terms[i].end());
      both.insert(terms[j].begin(), terms[j].end());
      const std::set<int> keep = needed(terms, result, i, j);
      double work = 1, size = 1;
      for (int name : both) {
        work *= extents.at(name);
        if (keep.contains(name)) size *= extents.at(name);
      }
      if (std::pair(work, size) < least) least = {work, size}, best = {i, j};
    }
  return best;
}

struct Factor {
  Expr x;
  Axes axes;
};

struct EinsumBuilder {
  Graph& g;
  At at;

  Factor summed(Factor f, const std::set<int>& keep) const {
    std::vector<std::int64_t> away;
    Axes left;
    for (std::size_t k = 0; k < f.axes.size(); ++k) {
      if (keep.contains(f.axes[k]))
        left.push_back(f.axes[k]);
      else
        away.push_back(static_cast<std::int64_t>(k));
    }
    if (!away.empty()) f.x = g.sum(at(f.x), away);
    return {f.x, left};
  }
  // Takes the diagonal of axes with the same name. The last of them remains.
  Factor diagonal(Factor f) const {
    for (std::size_t a = 0; a < f.axes.size(); ++a) {
      const auto again = std::find(f.axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, f.axes.end(), f.axes[a]);
      if (again == f.axes.end()) continue;
      const auto b = static_cast<std::size_t>(again - f.axes.begin());
      std::vector<std::int64_t> perm;
      Axes names;
      for (std::size_t k = 0; k < f.axes.size(); ++k)
        if (k != a && k != b) perm.push_back(static_cast<std::int64_t>(k)), names.push_back(f.axes[k]);
      perm.push_back(static_cast<std::int64_t>(a));
      perm.push_back(static_cast<std::int64_t>(b));
      const Expr x = g.transpose(at(f.x), perm);
      const int rank = x.rank();
      Dims square(static_cast<std::size_t>(rank), Dim(1));
      square[static_cast<std::size_t>(rank) - 2] = x.dim(-2), square.back() = x.dim(-1);
      const Shape places(square, DType::I32);
      const Expr own = g.eq(at(g.iota(places, rank - 2, at.loc)), at(g.iota(places, rank - 1, at.loc)));
      f.x = g.sum(at(g.where(at(own), at(x), at(0))), {rank - 1});
      names.push_back(f.axes[a]);
      f.axes = names;
      return diagonal(f);
    }
    return f;
  }
  Factor without(const Factor& f, int name) const {
    Dims dims;
    Axes axes;
    for (std::size_t k = 0; k < f.axes.size(); ++k)
      if (f.axes[k] != name) dims.push_back(f.x.dim(static_cast<int>(k))), axes.push_back(f.axes[k]);
    return {g.reshape(at(f.x), dims), axes};
  }
  Factor product(Factor a, Factor b, const std::set<int>& keep) const {
    for (int name : Axes(a.axes)) {  // an axis of extent 1 is broadcast to the other's extent
      if (!holds(b.axes, name)) continue;
      const Dim x = a.x.dim(static_cast<int>(place_in(a.axes, name))),
                y = b.x.dim(static_cast<int>(place_in(b.axes, name)));
      if (x == y) continue;
      if (x.is_static(1))
        a = without(a, name);
      else if (y.is_static(1))
        b = without(b, name);
    }
    std::set<int> of_a = keep, of_b = keep;
    of_a.insert(b.axes.begin(), b.axes.end());
    a = summed(a, of_a);
    of_b.insert(a.axes.begin(), a.axes.end());
    b = summed(b, of_b);
    ops::DotGeneral op;
    Axes batch, left, right;
    for (int name : a.axes) {
      if (!holds(b.axes, name)) {
        left.push_back(name);
        continue;
      }
      const bool kept = keep.contains(name);
      (kept ? op.lhs_batch : op.lhs_contract).push_back(place_in(a.axes, name));
      (kept ? op.rhs_batch : op.rhs_contract).push_back(place_in(b.axes, name));
      if (kept) batch.push_back(name);
    }
    for (int name : b.axes)
      if (!holds(a.axes, name)) right.push_back(name);
    batch.insert(batch.end(), left.begin(), left.end());
    batch.insert(batch.end(), right.begin(), right.end());
    return {g.dot_general(at(a.x), at(b.x), op), batch};
  }
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> einsum_path(const std::string& spec, const std::vector<Dims>& dims,
                                                             SourceLoc loc) {
  std::vector<int> ranks;
  for (const Dims& d : dims) ranks.push_back(static_cast<int>(d.size()));
  EinsumTerms e = parse_einsum(spec, ranks, loc);
  const auto extents = extents_of(spec, e.terms, dims, loc);
  std::vector<std::pair<std::size_t, std::size_t>> out;
  while (e.terms.size() > 1) {
    const auto [i, j] = cheapest(e.terms, e.result, extents);
    const std::set<int> keep = needed(e.terms, e.result, i, j);
    Axes joined;
    for (const Axes& t : {e.terms[i], e.terms[j]})
      for (int name : t)
        if (keep.contains(name) && !holds(joined, name)) joined.push_back(name);
    out.emplace_back(i, j);
    e.terms.erase(e.terms.begin() + static_cast<std::ptrdiff_t>(j));
    e.terms.erase(e.terms.begin() + static_cast<std::ptrdiff_t>(i));
    e.terms.push_back(joined);
  }
  return out;
}

Expr einsum(const std::string& spec, const ExprList& operands, bool cheapest_first, SourceLoc loc) {
  if (operands.empty()) refuse_einsum(loc, spec, "there are no operands");
  Graph& g = operands[0].graph();
  DType t = operands[0].dtype();
  std::vector<int> ranks;
  std::vector<Dims> dims;
  for (const Expr& x : operands) {
    t = building::promoted(t, x.dtype(), "einsum", loc);
    ranks.push_back(x.rank());
    dims.push_back(x.shape().dims());
  }
  const EinsumTerms e = parse_einsum(spec, ranks, loc);
  const auto extents = extents_of(spec, e.terms, dims, loc);
  const EinsumBuilder build{g, At{loc}};
  const DType inner = t == DType::Bool ? DType::I32 : t;
  std::vector<Factor> factors;
  for (std::size_t i = 0; i < operands.size(); ++i)
    factors.push_back(
        build.diagonal({building::cast_at(g, value_in(g, operands[i], {}, loc), inner, loc), e.terms[i]}));
  while (factors.size() > 1) {
    std::vector<Axes> terms;
    for (const Factor& f : factors) terms.push_back(f.axes);
    const std::pair<std::size_t, std::size_t> pair = cheapest_first && factors.size() > 2
                                                         ? cheapest(terms, e.result, extents)
                                                         : std::pair<std::size_t, std::size_t>(0, 1);
    Factor made =
        build.product(factors[pair.first], factors[pair.second], needed(terms, e.result, pair.first, pair.second));
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(pair.second));
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(pair.first));
    factors.insert(cheapest_first ? factors.end() : factors.begin(), std::move(made));
  }
  Factor f = build.summed(factors[0], std::set<int>(e.result.begin(), e.result.end()));
  std::vector<std::int64_t> perm;
  for (int name : e.result) perm.push_back(place_in(f.axes, name));
  if (!std::is_sorted(perm.begin(), perm.end())) f.x = g.transpose(build.at(f.x), perm);
  return t == DType::Bool ? g.ne(build.at(f.x), build.at(0)) : f.x;
}

}  // namespace rlx
