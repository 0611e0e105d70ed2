// Attributes of ops. One description of each gives text, parsing, hashing, equality and serialization.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// The closed set of attribute types. Unset optional scalars hold nothing.
enum class AttrType : std::uint8_t {
  Bool,
  I64,
  F64,
  Enum,
  String,
  DType,
  DimList,
  I64List,
  F64List,
  EnumList,
  Bytes,
  Tensor,
  Body,
  OptBool,
  OptI64,
  OptF64,
  OptEnum,
  OptBody,
  Operands,
  OptDType,  // files store the number: add new types at the end
};
/// True for sub-graphs. Their value is a Subgraph, null for an unset optional one.
constexpr bool holds_body(AttrType t) { return t == AttrType::Body || t == AttrType::OptBody; }
/// True for the types whose value may be unset (a monostate).
constexpr bool is_optional(AttrType t) {
  return (t >= AttrType::OptBool && t <= AttrType::OptEnum) || t == AttrType::OptDType;
}

/// A value of any attribute type. Enums and operand masks are stored as int64 (EnumList as I64List), an unset optional
/// as monostate.
using AttrValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, DType, Dims, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::byte>, Tensor, Subgraph>;

/// Where the text of a node prints an attribute.
enum class AttrPlace : std::uint8_t {
  Braces,     // {axis = 1}
  Mnemonic,   // the enum's value, or the string, is the printed op name: gelu(%0)
  Suffix,     // the enum's value ends the printed op name: reduce_sum(%0)
  TypeDims,   // the dims of the result type: `: [4, 8] f32`
  TypeDType,  // the dtype of the result type
  Operands,   // names before the optional operands that are present: f(%0, scale=%1)
};

/// One attribute of an op: its name, type and access.
struct AttrField {
  std::string_view name;
  AttrType type;
  AttrPlace place;
  std::span<const std::string_view> enum_names;
  AttrValue (*get)(const void* op);
  void (*set)(void* op, AttrValue value);  // the variant already holds the right alternative
};

namespace detail {
template <class T>
struct AttrTraits;  // no definition: a field type outside the closed set does not compile
template <class T, AttrType Type>
struct PlainAttr {
  static constexpr AttrType type = Type;
  static constexpr std::span<const std::string_view> names() { return {}; }
  static AttrValue get(const T& v) { return v; }
  static void set(T& v, AttrValue a) { v = std::get<T>(std::move(a)); }
};
template <>
struct AttrTraits<bool> : PlainAttr<bool, AttrType::Bool> {};
template <>
struct AttrTraits<std::int64_t> : PlainAttr<std::int64_t, AttrType::I64> {};
template <>
struct AttrTraits<double> : PlainAttr<double, AttrType::F64> {};
template <>
struct AttrTraits<std::string> : PlainAttr<std::string, AttrType::String> {};
template <>
struct AttrTraits<DType> : PlainAttr<DType, AttrType::DType> {};
template <>
struct AttrTraits<Dims> : PlainAttr<Dims, AttrType::DimList> {};
template <>
struct AttrTraits<std::vector<std::int64_t>> : PlainAttr<std::vector<std::int64_t>, AttrType::I64List> {};
template <>
struct AttrTraits<std::vector<double>> : PlainAttr<std::vector<double>, AttrType::F64List> {};
template <>
struct AttrTraits<std::vector<std::byte>> : PlainAttr<std::vector<std::byte>, AttrType::Bytes> {};
template <>
struct AttrTraits<Tensor> : PlainAttr<Tensor, AttrType::Tensor> {};
template <>
struct AttrTraits<Subgraph> : PlainAttr<Subgraph, AttrType::Body> {};

template <>
struct AttrTraits<OperandMask> {
  static constexpr AttrType type = AttrType::Operands;
  static constexpr std::span<const std::string_view> names() { return {}; }
  static AttrValue get(const OperandMask& v) { return static_cast<std::int64_t>(v.bits); }
  static void set(OperandMask& v, AttrValue a) { v.bits = static_cast<std::uint32_t>(std::get<std::int64_t>(a)); }
};

template <class E>
  requires std::is_enum_v<E>
struct AttrTraits<E> {
  static constexpr AttrType type = AttrType::Enum;
  static constexpr std::span<const std::string_view> names() { return EnumNames<E>::values; }
  static AttrValue get(const E& v) { return static_cast<std::int64_t>(v); }
  static void set(E& v, AttrValue a) { v = static_cast<E>(std::get<std::int64_t>(a)); }
};
template <class E>
  requires std::is_enum_v<E>
struct AttrTraits<std::vector<E>> {
  static constexpr AttrType type = AttrType::EnumList;
  static constexpr std::span<const std::string_view> names() { return EnumNames<E>::values; }
  static AttrValue get(const std::vector<E>& v) {
    std::vector<std::int64_t> out;
    for (E e : v) out.push_back(static_cast<std::int64_t>(e));
    return out;
  }
  static void set(std::vector<E>& v, AttrValue a) {
    v.clear();
    for (std::int64_t e : std::get<std::vector<std::int64_t>>(a)) v.push_back(static_cast<E>(e));
  }
};
template <class T>
struct AttrTraits<std::optional<T>> {
  using Inner = AttrTraits<T>;
  static constexpr AttrType type = Inner::type == AttrType::Bool    ? AttrType::OptBool
                                   : Inner::type == AttrType::I64   ? AttrType::OptI64
                                   : Inner::type == AttrType::F64   ? AttrType::OptF64
                                   : Inner::type == AttrType::DType ? AttrType::OptDType
                                                                    : AttrType::OptEnum;
  static_assert(Inner::type <= AttrType::Enum || Inner::type == AttrType::DType,
                "only bool, int64, double, dtypes and enums may be optional");
  static constexpr std::span<const std::string_view> names() { return Inner::names(); }
  static AttrValue get(const std::optional<T>& v) { return v ? Inner::get(*v) : AttrValue{}; }
  static void set(std::optional<T>& v, AttrValue a) {
    if (std::holds_alternative<std::monostate>(a))
      v.reset();
    else
      Inner::set(v.emplace(), std::move(a));
  }
};

template <auto Member>
struct FieldAccess;
template <class Op, class T, T Op::*Member>
struct FieldAccess<Member> {
  using Traits = AttrTraits<T>;
  static AttrValue get(const void* op) { return Traits::get(static_cast<const Op*>(op)->*Member); }
  static void set(void* op, AttrValue value) { Traits::set(static_cast<Op*>(op)->*Member, std::move(value)); }
  static std::uint32_t mask_bits(const void* op)
    requires std::is_same_v<T, OperandMask>
  {
    return (static_cast<const Op*>(op)->*Member).bits;
  }
};
}  // namespace detail

/// Describes one field of an op struct, for example `field<&ops::Softmax::axis>("axis")`.
template <auto Member>
constexpr AttrField field(std::string_view name, AttrPlace place = AttrPlace::Braces) {
  using Access = detail::FieldAccess<Member>;
  constexpr AttrType type = Access::Traits::type;
  return {name,         type,        type == AttrType::Operands ? AttrPlace::Operands : place, Access::Traits::names(),
          &Access::get, &Access::set};
}

/// The same for an optional sub-graph (null when unset).
template <auto Member>
constexpr AttrField optional_body(std::string_view name) {
  AttrField f = field<Member>(name);
  f.type = AttrType::OptBody;
  return f;
}

/// An immutable op with its attributes, shared by every graph that holds it.
class OpBox {
 public:
  template <class Op>
    requires requires {
               Op::kind;
               Op::def;
             }
  OpBox(Op op) : kind_(Op::kind), data_(std::make_shared<const Op>(std::move(op))) {}  // NOLINT(implicit)
  /// From attributes made by make_default_op(kind). InvalidArgument for null.
  OpBox(OpKind kind, std::shared_ptr<const void> data) : kind_(kind), data_(std::move(data)) {
    if (!data_)
      throw Error(ErrorCode::InvalidArgument, "the op has no attributes", "create the op with make_default_op");
  }

  OpKind kind() const { return kind_; }
  const void* data() const { return data_.get(); }
  template <class Op>
  bool is() const {
    return kind_ == Op::kind;
  }
  /// The attributes as Op; Internal error when the kind differs.
  template <class Op>
  const Op& as() const {
    check(kind_ == Op::kind && data_ != nullptr, "op read as another kind, or after it was moved from");
    return *static_cast<const Op*>(data_.get());
  }
  template <class Op>
  const Op* get_if() const {
    return kind_ == Op::kind ? static_cast<const Op*>(data_.get()) : nullptr;
  }

 private:
  OpKind kind_;
  std::shared_ptr<const void> data_;
};

/// The described fields of an op, in the order of its record. Text, hash and serialization walk them.
std::span<const AttrField> attr_fields(OpKind kind);
/// Deep equality of two values: numbers by bits (a NaN equals itself), tensors by bytes, sub-graphs by structure.
bool same_attr(const AttrValue& a, const AttrValue& b);
/// Deep equality of kind and every attribute (tensors by bytes, sub-graphs by structure).
bool same_op(const OpBox& a, const OpBox& b);
/// A copy of the attributes of `op`. Change them through AttrField::set, then box them.
std::shared_ptr<void> copy_of(const OpBox& op);
/// The shared op of `kind` with every attribute at its default.
const OpBox& default_op(OpKind kind);
/// The attributes of a default-constructed op of `kind`. Set them through AttrField::set, then box them.
std::shared_ptr<void> make_default_op(OpKind kind);
/// The printed name: the value of the mnemonic attribute when the op has one, else the op's name ("gelu", "softmax").
std::string op_text_name(const OpBox& op);

}  // namespace rlx
