// Ops defined outside this repository: their registry, and the attributes they carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/custom.h"

namespace rlx {

/// Makes `def` the record of `ops::Custom` nodes called `def.name` ("acme.scaled_tanh": at least two lower-case words
/// joined by dots). The record has `.kind = OpKind::Custom, .attrs = {}`. It needs `infer`, and either `reference` or a
/// `decompose` that `reference` is derived from. Every other missing rule is `none("the reason users read")`. Throws
/// InvalidArgument for a name that is taken and for an invalid record. Call it at start-up; the record stays for the
/// life of the process.
void register_op(const OpDef& def);
/// The record registered as `name`, or null.
const OpDef* registered_op(std::string_view name);
/// All registered records by name.
std::vector<const OpDef*> registered_ops();

namespace detail {
template <class T>
inline constexpr bool kAttrNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
[[noreturn]] void throw_attr_bytes(const OpBox& op, std::size_t read);
}  // namespace detail

/// The op called `name` with these numbers as its attributes, for `g.add(custom_op("acme.scaled_tanh", 0.5), {x})`.
template <class... T>
  requires(detail::kAttrNumber<T> && ...)
OpBox custom_op(std::string name, T... numbers) {
  std::vector<std::byte> bytes((sizeof(T) + ... + 0));
  [[maybe_unused]] std::byte* at = bytes.data();
  ((std::memcpy(at, &numbers, sizeof numbers), at += sizeof numbers), ...);
  return ops::Custom{std::move(name), std::move(bytes)};
}

/// The numbers that custom_op stored, for rules and kernels: `auto [scale] = custom_attrs<double>(c.box())`. Throws
/// InvalidArgument naming the op when its attributes have another size.
template <class... T>
  requires(detail::kAttrNumber<T> && ...)
std::tuple<T...> custom_attrs(const OpBox& op) {
  const std::vector<std::byte>& bytes = op.as<ops::Custom>().attrs;
  if (bytes.size() != (sizeof(T) + ... + 0)) detail::throw_attr_bytes(op, (sizeof(T) + ... + 0));
  std::tuple<T...> out;
  const std::byte* at = bytes.data();
  std::apply([&](T&... value) { ((std::memcpy(&value, at, sizeof value), at += sizeof value), ...); }, out);
  return out;
}

}  // namespace rlx
