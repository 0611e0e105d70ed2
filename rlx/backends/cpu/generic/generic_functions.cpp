// Loops over the rows of the function tables. Rows are constants here, so that each is inlined into its loop.
#include "rlx/backends/cpu/generic/generic_functions.h"

#include <array>
#include <type_traits>
#include <utility>

#include "rlx/ir/math/binary_table.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::cpu {
namespace {

struct Real {
  using Type = double;
  template <class Row>
  static constexpr auto of(const Row& r) {
    return r.real;
  }
};
struct Complex {
  using Type = std::complex<double>;
  template <class Row>
  static constexpr auto of(const Row& r) {
    return r.complex;
  }
};
struct Signed {
  using Type = std::int64_t;
  template <class Row>
  static constexpr auto of(const Row& r) {
    return r.signed_int;
  }
};
struct Unsigned {
  using Type = std::uint64_t;
  template <class Row>
  static constexpr auto of(const Row& r) {
    return r.unsigned_int;
  }
};
struct Boolean {
  using Type = std::uint64_t;
  static constexpr auto of(const FunctionRow& r) { return r.boolean; }
};

template <class Class, std::size_t Row, class A = typename Class::Type>
void block(const A* a, const A*, const A*, A* out, int n, [[maybe_unused]] const BlockArgs& args) {
  constexpr auto fn = Class::of(kFunctionTable[Row]);
  for (int i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<A> && !std::is_same_v<Class, Boolean>)
      out[i] = fn(a[i], args.bits);
    else
      out[i] = fn(a[i]);
  }
}
template <std::size_t Row>
void block_with(const double* a, const double*, const double*, double* out, int n, const BlockArgs& args) {
  constexpr auto fn = kFunctionTable[Row].real_with;
  const double alpha = args.params.alpha, beta = args.params.beta;
  for (int i = 0; i < n; ++i) out[i] = fn(a[i], alpha, beta);
}

template <class Class, std::size_t Row, class A = typename Class::Type>
void pair(const A* a, const A* b, const A*, A* out, int n, [[maybe_unused]] const BlockArgs& args) {
  constexpr auto fn = Class::of(kBinaryTable[Row]);
  for (int i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<A>)
      out[i] = fn(a[i], b[i], args.bits);
    else
      out[i] = fn(a[i], b[i]);
  }
}

template <class Class, std::size_t Row>
constexpr BlockFn<typename Class::Type> block_of() {
  if constexpr (Class::of(kFunctionTable[Row]) != nullptr)
    return &block<Class, Row>;
  else
    return nullptr;
}
template <class Class, std::size_t Row>
constexpr BlockFn<typename Class::Type> pair_of() {
  if constexpr (Class::of(kBinaryTable[Row]) != nullptr)
    return &pair<Class, Row>;
  else
    return nullptr;
}
template <std::size_t Row>
constexpr BlockFn<double> block_with_of() {
  if constexpr (kFunctionTable[Row].real_with != nullptr)
    return &block_with<Row>;
  else
    return nullptr;
}

using Rows = std::make_index_sequence<std::size(kFunctionTable)>;
template <class Class, std::size_t... Row>
constexpr std::array<BlockFn<typename Class::Type>, sizeof...(Row)> blocks(std::index_sequence<Row...>) {
  return {block_of<Class, Row>()...};
}
template <std::size_t... Row>
constexpr std::array<BlockFn<double>, sizeof...(Row)> blocks_with(std::index_sequence<Row...>) {
  return {block_with_of<Row>()...};
}
template <class Class, std::size_t... Row>
constexpr std::array<BlockFn<typename Class::Type>, sizeof...(Row)> pairs(std::index_sequence<Row...>) {
  return {pair_of<Class, Row>()...};
}
template <class Class>
constexpr auto kPairs = pairs<Class>(std::make_index_sequence<std::size(kBinaryTable)>{});
template <class Class>
constexpr auto kBlocks = blocks<Class>(Rows{});
constexpr auto kBlocksWith = blocks_with(Rows{});

}  // namespace

template <class A>
BlockFn<A> activation_block(const ops::Activation& op, DType t) {
  const auto row = static_cast<std::size_t>(op.fn);
  if (row >= std::size(kFunctionTable)) return nullptr;
  if constexpr (std::is_same_v<A, double>)
    return has_own_params(op) ? kBlocks<Real>[row] : kBlocksWith[row];
  else if constexpr (std::is_same_v<A, std::complex<double>>)
    return kBlocks<Complex>[row];
  else if constexpr (std::is_same_v<A, std::int64_t>)
    return kBlocks<Signed>[row];
  else
    return t == DType::Bool ? kBlocks<Boolean>[row] : kBlocks<Unsigned>[row];
}

template <class A>
BlockFn<A> binary_block(BinaryKind fn) {
  const auto row = static_cast<std::size_t>(fn);
  if (row >= std::size(kBinaryTable)) return nullptr;
  if constexpr (std::is_same_v<A, double>)
    return kPairs<Real>[row];
  else if constexpr (std::is_same_v<A, std::complex<double>>)
    return kPairs<Complex>[row];
  else if constexpr (std::is_same_v<A, std::int64_t>)
    return kPairs<Signed>[row];
  else
    return kPairs<Unsigned>[row];
}

template BlockFn<double> binary_block(BinaryKind);
template BlockFn<std::complex<double>> binary_block(BinaryKind);
template BlockFn<std::int64_t> binary_block(BinaryKind);
template BlockFn<std::uint64_t> binary_block(BinaryKind);
template BlockFn<double> activation_block(const ops::Activation&, DType);
template BlockFn<std::complex<double>> activation_block(const ops::Activation&, DType);
template BlockFn<std::int64_t> activation_block(const ops::Activation&, DType);
template BlockFn<std::uint64_t> activation_block(const ops::Activation&, DType);

}  // namespace rlx::cpu
