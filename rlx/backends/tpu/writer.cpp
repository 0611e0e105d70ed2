// The MLIR syntax of values, types, ops and regions.
#include "rlx/backends/tpu/writer.h"

#include <algorithm>
#include <charconv>

#include "rlx/error.h"

namespace rlx::tpu {
namespace {

std::string_view element_name(DType t) {
  switch (t) {
    case DType::Bool: return "i1";
    case DType::I8: return "i8";
    case DType::I16: return "i16";
    case DType::I32: return "i32";
    case DType::I64: return "i64";
    case DType::U8: return "ui8";
    case DType::U16: return "ui16";
    case DType::U32: return "ui32";
    case DType::U64: return "ui64";
    case DType::BF16: return "bf16";
    case DType::F16: return "f16";
    case DType::F32: return "f32";
    case DType::F64: return "f64";
    case DType::C64: return "complex<f32>";
    case DType::C128: return "complex<f64>";
    case DType::F8E4M3: return "f8E4M3FN";
    case DType::F8E5M2: return "f8E5M2";
    default: break;
  }
  check(false, "a 4-bit dtype has no StableHLO element type");
  return "";
}

std::string joined(std::string_view front, std::span<const std::int64_t> list, char back) {
  std::string out(front);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out += ", ";
    detail::append_text(out, list[i]);
  }
  out += back;
  return out;
}

}  // namespace

std::int64_t Hlo::elements() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

std::string i64_array(std::span<const std::int64_t> list) {
  return list.empty() ? "array<i64>" : joined("array<i64: ", list, '>');
}
std::string i64_list(std::span<const std::int64_t> list) { return joined("[", list, ']'); }

// -- syntax --

void Writer::number(std::uint64_t n) {
  char digits[20];
  text_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

void Writer::name(const Hlo& v) {
  text_ += '%';
  number(v.id);
  if (v.result < 0) return;
  text_ += '#';
  number(static_cast<std::uint64_t>(v.result));
}

void Writer::type(DType t, const Extents& dims, bool token) {
  if (token) {
    text_ += "!stablehlo.token";
    return;
  }
  text_ += "tensor<";
  // XLA's CPU client ends the process on larger values.
  constexpr double kMostElements = 1e11;
  double elements = 1;
  for (std::int64_t d : dims) elements *= static_cast<double>(d);
  if (elements > kMostElements)
    throw Error(
        ErrorCode::OutOfMemory,
        concat_text("device tpu: a program has a value of ", static_cast<std::uint64_t>(std::min(elements, 1e19)),
                    " elements, more than any device holds"),
        "run it with smaller dimensions");
  for (std::int64_t d : dims) {
    number(static_cast<std::uint64_t>(d));
    text_ += 'x';
  }
  text_ += element_name(t);
  text_ += '>';
}

void Writer::types(std::span<const HloType> list) {
  text_ += '(';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != 0) text_ += ", ";
    type(list[i]);
  }
  text_ += ')';
}

void Writer::values(std::span<const Hlo> list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != 0) text_ += ", ";
    name(list[i]);
  }
}

std::uint32_t Writer::begin_result(std::size_t results) {
  const std::uint32_t id = next_++;
  indent();
  text_ += '%';
  number(id);
  if (results != 1) {
    text_ += ':';
    number(results);
  }
  text_ += " = ";
  return id;
}

// -- ops --

Hlo Writer::op(std::string_view op_name, std::initializer_list<const Hlo*> operands, HloType result,
               std::string_view attributes) {
  const bool one_type = attributes.empty() && operands.size() != 0 && op_name != "select" &&
                        op_name.find('.') == std::string_view::npos &&
                        std::all_of(operands.begin(), operands.end(),
                                    [&](const Hlo* v) { return v->dtype == result.dtype && v->dims == result.dims; });
  Hlo out{begin_result(1), -1, result.dtype, std::move(result.dims), result.token};
  const auto list = [&] {
    bool first = true;
    for (const Hlo* v : operands) {
      if (!first) text_ += ", ";
      name(*v);
      first = false;
    }
  };
  if (one_type) {  // the short form
    text_ += "stablehlo.";
    text_ += op_name;
    text_ += ' ';
    list();
    text_ += " : ";
  } else {
    text_ += op_name.find('.') == std::string_view::npos ? "\"stablehlo." : "\"";
    text_ += op_name;
    text_ += "\"(";
    list();
    text_ += ')';
    if (!attributes.empty()) {
      text_ += " {";
      text_ += attributes;
      text_ += '}';
    }
    text_ += " : (";
    bool first = true;
    for (const Hlo* v : operands) {
      if (!first) text_ += ", ";
      type(*v);
      first = false;
    }
    text_ += ") -> ";
  }
  type(out);
  text_ += '\n';
  return out;
}

Hlo Writer::op_of(std::string_view op_name, std::span<const Hlo> operands, HloType result,
                  std::string_view attributes) {
  const HloType list[] = {std::move(result)};
  return ops(op_name, operands, list, attributes)[0];
}

Hlos Writer::ops(std::string_view op_name, std::span<const Hlo> operands, std::span<const HloType> results,
                 std::string_view attributes) {
  return with_regions(op_name, operands, results, {}, attributes);
}

Hlo Writer::compare(std::string_view direction, const Hlo& a, const Hlo& b) {
  Hlo out{begin_result(1), -1, DType::Bool, a.dims};
  text_ += "stablehlo.compare ";
  text_ += direction;
  text_ += ", ";
  name(a);
  text_ += ", ";
  name(b);
  text_ += is_signed_int(a.dtype) ? ", SIGNED : (" : is_inexact(a.dtype) ? ", FLOAT : (" : ", UNSIGNED : (";
  type(a);
  text_ += ", ";
  type(b);
  text_ += ") -> ";
  type(out);
  text_ += '\n';
  return out;
}

Hlo Writer::convert(const Hlo& a, DType to) { return a.dtype == to ? a : op("convert", {&a}, {to, a.dims}); }

Hlo Writer::complex(const Hlo& re, const Hlo& im) {
  return op("complex", {&re, &im}, {re.dtype == DType::F64 ? DType::C128 : DType::C64, re.dims});
}

// -- moves --

Hlo Writer::reshape(const Hlo& a, const Extents& dims) {
  return a.dims == dims ? a : op("reshape", {&a}, {a.dtype, dims});
}

Hlo Writer::transpose(const Hlo& a, std::span<const std::int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return a;
  Extents dims;
  for (std::int64_t p : perm) dims.push_back(a.extent(p));
  return op("transpose", {&a}, {a.dtype, std::move(dims)}, concat_text("permutation = ", i64_array(perm)));
}

Hlo Writer::broadcast(const Hlo& a, const Extents& dims, std::span<const std::int64_t> axes) {
  if (a.dims == dims) return a;
  Hlo out{begin_result(1), -1, a.dtype, dims};
  text_ += "stablehlo.broadcast_in_dim ";
  name(a);
  text_ += ", dims = ";
  text_ += i64_list(axes);
  text_ += " : (";
  type(a);
  text_ += ") -> ";
  type(out);
  text_ += '\n';
  return out;
}

Hlo Writer::broadcast(const Hlo& a, const Extents& dims) {
  std::vector<std::int64_t> axes(a.dims.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(dims.size() - axes.size() + i);
  return broadcast(a, dims, axes);
}

Hlo Writer::slice(const Hlo& a, std::span<const std::int64_t> starts, std::span<const std::int64_t> limits,
                  std::span<const std::int64_t> strides) {
  Extents dims;
  for (std::size_t i = 0; i < starts.size(); ++i) dims.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  if (dims == a.dims) return a;
  return op("slice", {&a}, {a.dtype, std::move(dims)},
            concat_text("start_indices = ", i64_array(starts), ", limit_indices = ", i64_array(limits),
                        ", strides = ", i64_array(strides)));
}

Hlo Writer::pad(const Hlo& a, const Hlo& value, std::span<const std::int64_t> low, std::span<const std::int64_t> high,
                std::span<const std::int64_t> interior) {
  Extents dims;
  for (std::size_t i = 0; i < low.size(); ++i)
    dims.push_back(a.dims[i] + std::max<std::int64_t>(a.dims[i] - 1, 0) * interior[i] + low[i] + high[i]);
  return op("pad", {&a, &value}, {a.dtype, std::move(dims)},
            concat_text("edge_padding_low = ", i64_array(low), ", edge_padding_high = ", i64_array(high),
                        ", interior_padding = ", i64_array(interior)));
}

Hlo Writer::concat(std::span<const Hlo> parts, std::int64_t axis) {
  if (parts.size() == 1) return parts[0];
  HloType out = type_of(parts[0]);
  std::int64_t& extent = out.dims[static_cast<std::size_t>(axis)];
  for (const Hlo& p : parts.subspan(1)) extent += p.extent(axis);
  return op_of("concatenate", parts, std::move(out), concat_text("dimension = ", axis, " : i64"));
}

Hlo Writer::iota(DType t, const Extents& dims, std::int64_t axis) {
  return op("iota", {}, {t, dims}, concat_text("iota_dimension = ", axis, " : i64"));
}

Hlo Writer::dynamic_slice(const Hlo& a, std::span<const Hlo> starts, const Extents& sizes) {
  Hlos operands{a};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op_of("dynamic_slice", operands, {a.dtype, sizes}, concat_text("slice_sizes = ", i64_array(sizes)));
}

Hlo Writer::dynamic_update_slice(const Hlo& a, const Hlo& update, std::span<const Hlo> starts) {
  Hlos operands{a, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op_of("dynamic_update_slice", operands, type_of(a));
}

// -- regions --

Hlos Writer::with_regions(std::string_view op_name, std::span<const Hlo> operands, std::span<const HloType> results,
                          std::initializer_list<std::pair<std::span<const HloType>, Body>> regions,
                          std::string_view attributes) {
  check(!results.empty(), "a StableHLO op has no result");
  const std::uint32_t id = begin_result(results.size());
  text_ += op_name.find('.') == std::string_view::npos ? "\"stablehlo." : "\"";
  text_ += op_name;
  text_ += "\"(";
  values(operands);
  text_ += ')';
  if (regions.size() != 0) text_ += " (";
  bool first = true;
  for (const auto& [arguments, body] : regions) {
    text_ += first ? "{\n" : ", {\n";
    first = false;
    regions_.emplace_back();
    Hlos args;
    for (const HloType& t : arguments) args.push_back({next_++, -1, t.dtype, t.dims, t.token});
    if (!args.empty()) {
      text_.append(2 * regions_.size() - 2, ' ');
      text_ += "^bb0(";
      for (const Hlo& a : args) {
        if (&a != &args.front()) text_ += ", ";
        name(a);
        text_ += ": ";
        type(a);
      }
      text_ += "):\n";
    }
    const Hlos given = body(args);
    indent();
    text_ += "stablehlo.return ";
    values(given);
    text_ += " : ";
    for (const Hlo& v : given) {
      if (&v != &given.front()) text_ += ", ";
      type(v);
    }
    text_ += '\n';
    regions_.pop_back();
    indent();
    text_ += '}';
  }
  if (regions.size() != 0) text_ += ')';
  if (!attributes.empty()) {
    text_ += " {";
    text_ += attributes;
    text_ += '}';
  }
  text_ += " : (";
  for (const Hlo& v : operands) {
    if (&v != &operands.front()) text_ += ", ";
    type(v);
  }
  text_ += ") -> ";
  types(results);
  text_ += '\n';
  Hlos out;
  for (std::size_t r = 0; r < results.size(); ++r)
    out.push_back({id, results.size() == 1 ? -1 : static_cast<std::int32_t>(r), results[r].dtype, results[r].dims,
                   results[r].token});
  return out;
}

Hlo Writer::reduce(std::string_view op_name, const Hlo& a, const Hlo& init, std::span<const std::int64_t> axes) {
  if (axes.empty()) return a;
  HloType out{a.dtype, {}};
  for (std::int64_t i = 0; i < a.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.dims.push_back(a.extent(i));
  const Hlo operands[] = {a, init};
  const HloType results[] = {out}, scalars[] = {{a.dtype, {}}, {a.dtype, {}}};
  return with_regions("reduce", operands, results,
                      {{scalars, [&](const Hlos& v) { return Hlos{op(op_name, v[0], v[1])}; }}},
                      concat_text("dimensions = ", i64_array(axes)))[0];
}

// -- order --

Hlo Writer::order() {
  if (!order_) order_ = op("after_all", {}, token_type());
  return *order_;
}

Hlos Writer::in_order(std::span<const Hlo> list) {
  Hlos operands(list.begin(), list.end());
  operands.push_back(order());
  std::vector<HloType> types;
  for (const Hlo& v : operands) types.push_back(type_of(v));
  Hlos out = ops("optimization_barrier", operands, types);
  order_ = std::move(out.back());
  out.pop_back();
  return out;
}

// -- functions --

Hlos Writer::begin_main(std::span<const HloType> arguments, std::span<const std::string> attributes,
                        std::span<const HloType> results) {
  text_ +=
      "module @rlx attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "func.func public @main(";
  Hlos out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    out.push_back({next_++, -1, arguments[i].dtype, arguments[i].dims});
    if (i != 0) text_ += ", ";
    name(out.back());
    text_ += ": ";
    type(out.back());
    text_ += attributes[i];
  }
  text_ += ") -> ";
  types(results);
  text_ += " {\n";
  regions_.emplace_back();
  return out;
}

void Writer::end_main(std::span<const Hlo> results) {
  text_ += "  return";
  if (!results.empty()) {
    text_ += ' ';
    values(results);
    text_ += " : ";
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i != 0) text_ += ", ";
      type(results[i]);
    }
  }
  text_ += "\n}\n}\n";
}

}  // namespace rlx::tpu
