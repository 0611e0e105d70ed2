// Equality of attributes and ops, and the default op of each kind.
#include "rlx/ir/attr.h"

#include <bit>

#include "rlx/ir/op_def.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {
namespace {

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

}  // namespace

std::span<const AttrField> attr_fields(OpKind kind) { return op_def(kind).attrs; }

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    if (x->size() != y.size()) return false;
    for (std::size_t i = 0; i < x->size(); ++i)
      if (!same_bits((*x)[i], y[i])) return false;
    return true;
  }
  if (const auto* x = std::get_if<Tensor>(&a)) {
    const auto& y = std::get<Tensor>(b);
    return x->empty() == y.empty() && x->identical(y);
  }
  if (const auto* x = std::get_if<Subgraph>(&a)) {
    const auto& y = std::get<Subgraph>(b);
    if (*x == y) return true;
    return *x && y && same_graph(**x, *y);
  }
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, Subgraph>)
          return false;  // compared above
        else
          return x == std::get<T>(b);
      },
      a);
}

bool same_op(const OpBox& a, const OpBox& b) {
  if (a.kind() != b.kind()) return false;
  if (a.data() == b.data()) return true;
  for (const AttrField& f : attr_fields(a.kind()))
    if (!same_attr(f.get(a.data()), f.get(b.data()))) return false;
  return true;
}

std::shared_ptr<void> copy_of(const OpBox& op) {
  std::shared_ptr<void> copy = make_default_op(op.kind());
  for (const AttrField& f : attr_fields(op.kind())) f.set(copy.get(), f.get(op.data()));
  return copy;
}

const OpBox& default_op(OpKind kind) {
  static const std::vector<OpBox>* boxes = [] {
    auto* v = new std::vector<OpBox>();
    for (int k = 0; k < kNumOpKinds; ++k)
      v->emplace_back(static_cast<OpKind>(k), make_default_op(static_cast<OpKind>(k)));
    return v;
  }();
  if (static_cast<std::size_t>(kind) >= boxes->size())
    detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(kind));
  return (*boxes)[static_cast<std::size_t>(kind)];
}

}  // namespace rlx
