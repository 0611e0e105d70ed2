// Copies of bits in units.
#include "rlx/codegen/moves.h"

#include <algorithm>
#include <cstring>

#include "rlx/codegen/elements.h"
#include "rlx/ir/op_def.h"
#include "rlx/tensor/tensor.h"

namespace rlx::codegen {
namespace {

// Adds the extents and strides that a unit's length has to divide. False when `r` has no units of several elements.
bool add_multiples(const Ref& r, std::vector<Dim>& multiples) {
  const std::size_t last = r.dims.size() - 1;
  if (!r.strides[last].is(1)) return false;
  multiples.push_back(r.dims[last]);
  for (std::size_t a = 0; a < last; ++a) {
    if (r.strides[a].number().kind != Number::Kind::Extent) return false;
    multiples.push_back(r.strides[a].number().dim);
  }
  return true;
}

// Copies a view whose strides are known only at run time, element by element. Elements of more than 4 bytes are copied
// as 32-bit words.
void copy_by_numbers(NodeKernels& node, std::string name, const Ref& result, const Ref& from, const Steps& steps) {
  KernelBuilder k(node, std::move(name));
  const Ref to = as_words(result);
  const std::vector<std::string> c = Mover::names(to);
  std::string index;
  for (std::size_t a = 0; a < from.strides.size(); ++a) {
    std::string at = c[a];
    if (!steps.starts.empty()) {
      if (steps.steps[a] != 1) at = concat_text(at, " * ", steps.steps[a], "u");
      if (!steps.starts[a].is_static(0)) at = concat_text("(", at, " + ", k.size(Size(steps.starts[a])), ")");
    }
    index += concat_text(a ? " + " : "", at, " * ", k.size(from.strides[a]));
  }
  Ref source = from;
  source.dtype = to.dtype;
  if (const std::size_t words = size_bytes(from.dtype) / 4; words > 1)
    index = concat_text("(", index, ") * ", words, "u + ", c.back());
  const std::string statements = concat_text(k.split("i", to.dims, c), "let source = ", index, ";\n");
  finish_map(k, {to}, statements, {k.load(source, "source")});
}

Ref with_an_axis(Ref r) {
  r.dims.push_back(Dim(1));
  r.strides.push_back(Size(1));
  return r;
}

}  // namespace

Ref as_words(Ref r) {
  const std::size_t bytes = size_bytes(r.dtype);
  r.dtype = bytes == 1 ? DType::U8 : bytes == 2 ? DType::U16 : DType::U32;
  if (bytes <= 4) return r.dims.empty() ? with_an_axis(std::move(r)) : r;
  const auto words = static_cast<std::int64_t>(bytes / 4);
  for (Size& s : r.strides) {
    check(s.number().kind == Number::Kind::Extent, "a strided value of symbolic extents cannot be read as words");
    s = Size(s.number().dim * Dim(words));
  }
  r.dims.push_back(Dim(words));
  r.strides.push_back(Size(1));
  return r;
}

Ref grouped_axes(const Ref& r, const std::vector<std::int64_t>& special) {
  Dims dims;
  bool open = false;  // the last of dims may absorb the next axis
  for (int a = 0; a < r.rank(); ++a) {
    const bool alone = std::find(special.begin(), special.end(), a) != special.end();
    if (!alone && open)
      dims.back() = dims.back() * r.dims[static_cast<std::size_t>(a)];
    else
      dims.push_back(r.dims[static_cast<std::size_t>(a)]);
    open = !alone;
  }
  if (!open) dims.push_back(Dim(1));
  return reshaped(r, dims);
}

std::size_t group_of(std::int64_t axis, const std::vector<std::int64_t>& special) {
  std::size_t group = 0;
  const auto alone = [&](std::int64_t a) { return std::find(special.begin(), special.end(), a) != special.end(); };
  for (std::int64_t a = 1; a <= axis; ++a)
    if (alone(a) || alone(a - 1)) ++group;
  return group;
}

Mover::Mover(NodeKernels& node, std::string name, const std::vector<Ref>& refs, std::vector<Dim> offsets)
    : k_(node, std::move(name)) {
  const int size = static_cast<int>(size_bytes(refs.at(0).dtype));
  bytes_ = size;
  for (const Ref& r : refs)
    if (!add_multiples(r, offsets)) return;
  for (int bytes : {16, 4}) {
    const int count = bytes / size;
    const bool fits = std::all_of(offsets.begin(), offsets.end(), [&](const Dim& d) { return divided(d, count); }) &&
                      std::all_of(refs.begin(), refs.end(),
                                  [&](const Ref& r) { return node.is_aligned(r, static_cast<std::size_t>(bytes)); });
    if (!fits || bytes < size) continue;
    bytes_ = bytes, elements_ = count;
    return;
  }
}

Ref Mover::in_units(const Ref& r) const {
  if (elements_ == 1) return r;
  Ref out = r;
  const std::size_t last = r.dims.size() - 1;
  for (std::size_t a = 0; a < last; ++a) out.strides[a] = *divided(r.strides[a].number().dim, elements_);
  out.dims[last] = *divided(r.dims[last], elements_);
  out.dtype = DType::U32;
  return out;
}

std::string Mover::load(const Ref& in_units, std::string_view index) {
  if (bytes_ == 16) return k_.load4(in_units, index);
  return bytes_ == 4 ? k_.load_word(in_units, index) : k_.load(in_units, index);
}

std::string Mover::fill(const std::vector<std::string>& words, std::string_view last) const {
  std::string word = words[0];
  if (words.size() > 1) {  // an element has several words
    if (bytes_ == 16) {
      std::string list;
      for (std::size_t w = 0; w < 4; ++w) list += concat_text(w ? ", " : "", words[w % words.size()]);
      return concat_text("vec4<u32>(", list, ")");
    }
    for (std::size_t w = 1; w < words.size(); ++w)
      word = concat_text("select(", word, ", ", words[w], ", (", last, ") % ", words.size(), "u == ", w, "u)");
    return word;
  }
  if (const int inside = bytes_ == 16 ? elements_ / 4 : elements_; bytes_ >= 4 && inside > 1)
    word = concat_text("(", word, ") * ", inside == 2 ? "0x00010001u" : "0x01010101u");
  return bytes_ == 16 ? concat_text("vec4<u32>(", word, ")") : word;
}

std::vector<std::string> Mover::words_of(const Ref& scalar) {
  const std::size_t words = std::max<std::size_t>(1, size_bytes(scalar.dtype) / 4);
  Ref r = scalar;
  if (words == 1) {
    r.dtype = size_bytes(r.dtype) == 1 ? DType::U8 : size_bytes(r.dtype) == 2 ? DType::U16 : DType::U32;
    return {k_.load(r, "0u")};
  }
  std::vector<std::string> out;
  for (std::size_t w = 0; w < words; ++w) out.push_back(k_.load_word(r, concat_text(w, "u")));
  return out;
}

std::vector<std::string> Mover::words_of(DType t, double value) {
  const Tensor one = Tensor::full(Shape({}, t), value);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < one.size_bytes(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, one.data() + at, std::min<std::size_t>(4, one.size_bytes()));
    out.push_back(concat_text(word, "u"));
  }
  return out;
}

std::vector<std::string> Mover::names(const Ref& r) {
  std::vector<std::string> names;
  for (int a = 0; a < r.rank(); ++a) names.push_back(concat_text("c", a));
  return names;
}

void Mover::finish(const Ref& result, const std::string& statements, const std::string& value) {
  if (bytes_ == 16) return finish_at(result, result.elements(), statements, "i", value);
  finish_map(k_, {result}, statements, {value});
}

void Mover::finish_at(const Ref& result, const Dim& count, const std::string& statements, std::string_view at,
                      const std::string& value) {
  check(owns_words(), "two units of a kernel share a word");
  k_ << "let i = THREAD;\nif (i >= " << k_.size(Size(count)) << ") { return; }\n" << statements;
  k_ << (bytes_ == 16 ? k_.store4(result, at, value) : k_.store_word(result, at, value));
  k_.finish_threads(count);
}

void copy_elements(NodeKernels& node, std::string name, const Ref& result, Ref from, const Steps& steps) {
  if (result.elements().is_static(0)) return;
  if (std::any_of(from.strides.begin(), from.strides.end(),
                  [](const Size& s) { return s.number().kind != Number::Kind::Extent; }))
    return copy_by_numbers(node, std::move(name), result, from, steps);
  Dim offset(0);
  for (std::size_t a = 0; a < steps.starts.size(); ++a) {
    const Dim stride = from.strides[a].number().dim;
    offset = offset + steps.starts[a] * stride;
    if (steps.steps[a] != 1) from.strides[a] = Size(stride * Dim(steps.steps[a]));
  }
  from.dims = result.dims;
  std::vector<Ref> refs{as_words(result), as_words(from)};
  offset = offset * Dim(static_cast<std::int64_t>(std::max<std::size_t>(1, size_bytes(result.dtype) / 4)));
  join_axes(refs);
  Mover m(node, std::move(name), refs, {offset});
  const Ref to = m.in_units(refs[0]), source = m.in_units(refs[1]);
  std::string index = m.k().at(source, Mover::names(to));
  if (!offset.is_static(0)) index += concat_text(" + ", m.k().size(Size(m.in_units(offset))));
  const std::string statements = concat_text(m.split(to), "let source = ", index, ";\n");
  m.finish(to, statements, m.load(source, "source"));
}

std::string load_index(KernelBuilder& k, const Ref& r, std::string_view i) {
  if (r.dtype == DType::I32) return k.load(r, i);
  k.use("i64_to_index");
  return concat_text("i64_to_index(", k.load_word(r, concat_text("(", i, ") * 2u")), ", ",
                     k.load_word(r, concat_text("(", i, ") * 2u + 1u")), ")");
}

}  // namespace rlx::codegen
