// Kernel texts. Loads, stores and numbers of a body become bindings, offsets and words of the uniform.
//
// While a kernel is written it is unknown which values will share a binding. Texts therefore have a mark in place of
// each binding and offset: kOpen, the slot, ':', its kind, kClose. finish() resolves the marks.
#include "rlx/codegen/kernel_builder.h"

#include <algorithm>

#include "rlx/codegen/helpers/helpers.h"
#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

constexpr char kOpen = '\x01', kClose = '\x02';
constexpr std::int64_t kMaxGroups = 65535;  // most workgroups in one dimension of a launch

// The number of elements in a word.
int elements_of_word(DType t) { return static_cast<int>(4 / size_bytes(t)); }

}  // namespace

// -- values --

Dim Ref::extent(int first, int last) const {
  Dim n = 1;
  for (int a = first; a < last; ++a) n = n * dims[static_cast<std::size_t>(a)];
  return n;
}

std::vector<Size> dense_strides(const Dims& dims) {
  std::vector<Size> strides(dims.size(), Size(1));
  Dim n = 1;
  for (std::size_t a = dims.size(); a-- > 0;) {
    strides[a] = n;
    n = n * dims[a];
  }
  return strides;
}

Ref dense_ref(const Graph& g, Value v) {
  const Shape& s = g.shape(v);
  return {v, -1, s.dtype(), s.dims(), dense_strides(s.dims()), true};
}

Ref reshaped(Ref r, Dims dims) {
  check(r.dense, "a strided value cannot be reshaped in a kernel");
  r.strides = dense_strides(dims);
  r.dims = std::move(dims);
  return r;
}

Ref broadcast_to(Ref r, const Dims& dims) {
  std::vector<Size> strides(dims.size(), Size(0));
  const std::size_t shift = dims.size() - r.dims.size();
  for (std::size_t a = 0; a < r.dims.size(); ++a)
    if (!r.dims[a].is_static(1) || dims[a + shift].is_static(1)) strides[a + shift] = r.strides[a];
  r.dense = r.dense && r.dims == dims;
  r.strides = std::move(strides);
  r.dims = dims;
  return r;
}

bool computes(DType t) {
  switch (t) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::Bool: return true;
    default: return false;
  }
}

std::string_view compute_type(DType t) {
  if (is_float(t)) return "f32";
  return t == DType::I32 || t == DType::I16 || t == DType::I8 ? "i32" : "u32";
}

// -- the node --

NodeKernels::NodeKernels(const LirModule& lir, NodeId id, const Dialect& dialect) : lir_(lir), dialect_(dialect) {
  launches_.node = id;
  if (!lir.graph.is_static()) ranges_ = symbol_ranges(lir.graph);
}

Ref NodeKernels::value(Value v) const {
  const Shape& s = lir_.graph.shape(v);
  const LirValue& where = lir_.plan.at(v);
  Ref r{v, -1, s.dtype(), s.dims(), dense_strides(s.dims()), true};
  if (where.strides.empty()) return r;
  r.dense = false;
  for (int a = 0; a < r.rank(); ++a) {
    Size& stride = r.strides[static_cast<std::size_t>(a)];
    if (lir_.graph.is_static())
      stride = where.strides[static_cast<std::size_t>(a)];
    else
      stride = Size(Number{Number::Kind::Stride, {}, v, a});
  }
  return r;
}

bool NodeKernels::is_read(int r) const {
  return lir_.plan.at(Value(id(), static_cast<std::uint32_t>(r))).place != Place::None;
}

bool NodeKernels::is_aligned(const Ref& r, std::size_t bytes) const {
  if (r.scratch >= 0) return true;
  const LirValue& where = lir_.plan.at(r.value);
  return lir_.graph.is_static() ? where.offset % bytes == 0 : !where.is_view;
}

bool NodeKernels::in_place(int i, int r) const {
  const LirValue& from = lir_.plan.at(node().inputs[static_cast<std::size_t>(i)]);
  const LirValue& to = lir_.plan.at(Value(id(), static_cast<std::uint32_t>(r)));
  return from.place == to.place && from.index == to.index && from.offset == to.offset;
}

std::int64_t NodeKernels::upper(const Dim& d) const { return d.is_static() ? d.value() : d.range(ranges_).max; }

Ref NodeKernels::scratch(DType dtype, Dims dims) {
  Ref r{{}, static_cast<int>(launches_.scratch.size()), dtype, std::move(dims), {}, true};
  r.strides = dense_strides(r.dims);
  launches_.scratch.push_back(r.elements() * Dim(size_bytes(dtype)));
  return r;
}

// -- one kernel --

// The slots that share the bytes of one place.
struct KernelBuilder::Group {
  Place place = Place::None;
  std::uint32_t index = 0;
  std::size_t begin = 0, end = 0;
  int scratch = -1;
  bool wide = false, stored = false;
  std::vector<std::size_t> slots;
};

KernelBuilder::KernelBuilder(NodeKernels& node, std::string name, int threads) : node_(node), threads_(threads) {
  check(threads <= node.dialect().group_threads, "a kernel has more threads than its dialect allows");
  kernel_.name = std::move(name);
}

std::string KernelBuilder::number(Number n) {
  auto it = std::find(kernel_.numbers.begin(), kernel_.numbers.end(), n);
  if (it == kernel_.numbers.end()) it = kernel_.numbers.insert(it, std::move(n));
  const auto i = it - kernel_.numbers.begin();
  return concat_text("P[", i / 4, "].", "xyzw"[i % 4]);
}

std::string KernelBuilder::size(const Size& s) { return s.known() ? concat_text(s.value(), "u") : number(s.number()); }

std::size_t KernelBuilder::slot_of(const Ref& r) {
  const auto it = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
    return s.ref.scratch == r.scratch && (r.scratch >= 0 || s.ref.value == r.value);
  });
  if (it != slots_.end()) return static_cast<std::size_t>(it - slots_.begin());
  slots_.push_back({r});
  return slots_.size() - 1;
}

// Word `index` of the value.
std::string KernelBuilder::word_at(const Ref& r, std::string_view index) {
  return concat_text(kOpen, slot_of(r), ":at", kClose, "(", kOpen, slot_of(r), ":w", kClose, "(", index, "))");
}

std::string KernelBuilder::load_word(const Ref& r, std::string_view index) { return word_at(r, index); }

std::string KernelBuilder::load(const Ref& r, std::string_view index) {
  const int per_word = elements_of_word(r.dtype);
  if (per_word == 1) return from_bits(r.dtype, word_at(r, index));
  const std::size_t slot = slot_of(r);
  // The offset counts elements, since the value may begin inside a word.
  return from_bits(r.dtype, concat_text(kOpen, slot, per_word == 2 ? ":half" : ":byte", kClose, "(", kOpen, slot, ":e",
                                        kClose, "(", index, "))"));
}

std::string KernelBuilder::load4(const Ref& r, std::string_view index) {
  check(size_bytes(r.dtype) == 4, "a load of four elements needs a dtype of 4 bytes");
  const std::size_t slot = slot_of(r);
  slots_[slot].wide = true;
  const std::string words = concat_text(kOpen, slot, ":at4", kClose, "(", kOpen, slot, ":q", kClose, "(", index, "))");
  return compute_type(r.dtype) == "u32" ? words
                                        : concat_text("bitcast<vec4<", compute_type(r.dtype), ">>(", words, ")");
}

std::string KernelBuilder::store_word(const Ref& r, std::string_view index, std::string_view word) {
  const std::size_t slot = slot_of(r);
  slots_[slot].stored = true;
  return concat_text(kOpen, slot, ":put", kClose, "(", kOpen, slot, ":w", kClose, "(", index, "), ", word, ");\n");
}

std::string KernelBuilder::store(const Ref& r, std::string_view index, std::string_view value) {
  check(size_bytes(r.dtype) == 4, "a store of one element needs a dtype of 4 bytes");
  return store_word(r, index, to_bits(r.dtype, value));
}

std::string KernelBuilder::store4(const Ref& r, std::string_view index, std::string_view value) {
  check(size_bytes(r.dtype) == 4, "a store of four elements needs a dtype of 4 bytes");
  const std::size_t slot = slot_of(r);
  slots_[slot].wide = slots_[slot].stored = true;
  return concat_text(kOpen, slot, ":put4", kClose, "(", kOpen, slot, ":q", kClose, "(", index, "), bitcast<vec4<u32>>(",
                     value, "));\n");
}

std::string KernelBuilder::to_bits(DType t, std::string_view value) {
  switch (t) {
    case DType::F32:
    case DType::I32: return concat_text("bitcast<u32>(", value, ")");
    case DType::F16: use("f32_to_f16"); return concat_text("f32_to_f16(", value, ")");
    case DType::BF16: use("f32_to_bf16"); return concat_text("f32_to_bf16(", value, ")");
    case DType::I16: return concat_text("(bitcast<u32>(", value, ") & 0xffffu)");
    case DType::I8: return concat_text("(bitcast<u32>(", value, ") & 0xffu)");
    case DType::U16: return concat_text("((", value, ") & 0xffffu)");
    case DType::U8: return concat_text("((", value, ") & 0xffu)");
    default: return concat_text("(", value, ")");
  }
}

std::string KernelBuilder::from_bits(DType t, std::string_view word) {
  switch (t) {
    case DType::F32: return concat_text("bitcast<f32>(", word, ")");
    case DType::I32: return concat_text("bitcast<i32>(", word, ")");
    case DType::F16: use("f16_to_f32"); return concat_text("f16_to_f32(", word, ")");
    case DType::BF16: return concat_text("bitcast<f32>((", word, ") << 16u)");
    case DType::I16: return concat_text("(bitcast<i32>((", word, ") << 16u) >> 16u)");
    case DType::I8: return concat_text("(bitcast<i32>((", word, ") << 24u) >> 24u)");
    case DType::U16: return concat_text("((", word, ") & 0xffffu)");
    case DType::U8:
    case DType::Bool: return concat_text("((", word, ") & 0xffu)");
    default: return std::string(word);
  }
}

std::string KernelBuilder::at(const Ref& r, const std::vector<std::string>& coordinates) {
  std::string index;
  for (std::size_t a = 0; a < r.strides.size(); ++a) {
    if (r.strides[a].is(0) || r.dims[a].is_static(1)) continue;
    if (!index.empty()) index += " + ";
    index += coordinates[a];
    if (!r.strides[a].is(1)) index += concat_text(" * ", size(r.strides[a]));
  }
  return index.empty() ? "0u" : index;
}

std::string KernelBuilder::split(std::string_view index, const Dims& dims, const std::vector<std::string>& names) {
  std::string text, rest(index);
  std::size_t first = 0;  // the first axis longer than 1 takes the remaining quotient
  while (first + 1 < dims.size() && dims[first].is_static(1)) ++first;
  for (std::size_t a = dims.size(); a-- > 0;) {
    if (dims[a].is_static(1)) {
      text += concat_text("let ", names[a], " = 0u;\n");
    } else if (a == first) {
      text += concat_text("let ", names[a], " = ", rest, ";\n");
    } else {
      const std::string n = size(Size(dims[a]));
      text +=
          concat_text("let ", names[a], " = (", rest, ") % ", n, ";\nlet ", names[a], "_ = (", rest, ") / ", n, ";\n");
      rest = names[a] + "_";
    }
  }
  return text;
}

void KernelBuilder::global(std::string_view text) {
  if (std::find(globals_.begin(), globals_.end(), text) == globals_.end()) globals_.emplace_back(text);
}

void KernelBuilder::use(std::string_view helper) {
  for (std::string_view text : helper_texts(helper)) global(text);
}

// Values that share bytes share a binding, as the bindings of a kernel may not overlap.
std::vector<KernelBuilder::Group> KernelBuilder::grouped() const {
  std::vector<Group> groups;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    Group g{{}, 0, 0, 0, slot.ref.scratch, slot.wide, slot.stored, {s}};
    if (slot.ref.scratch < 0) {
      const LirValue& where = node_.lir().plan.at(slot.ref.value);
      g.place = where.place, g.index = where.index, g.begin = where.offset, g.end = where.offset + where.bytes;
      for (std::size_t i = 0; i < groups.size();) {
        Group& other = groups[i];
        if (other.scratch >= 0 || other.place != g.place || other.index != g.index || other.begin >= g.end ||
            g.begin >= other.end) {
          ++i;
          continue;
        }
        g.begin = std::min(g.begin, other.begin), g.end = std::max(g.end, other.end);
        g.wide |= other.wide, g.stored |= other.stored;
        g.slots.insert(g.slots.begin(), other.slots.begin(), other.slots.end());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    groups.push_back(std::move(g));
  }
  return groups;
}

// `text` with marks resolved: accessors become those of their binding; offsets are in words, elements or vectors.
std::string KernelBuilder::resolved(const std::string& text, const std::vector<Group>& groups) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find(kOpen, at);
    out.append(text, at, std::min(open, text.size()) - at);
    if (open == std::string::npos) break;
    const std::size_t colon = text.find(':', open), close = text.find(kClose, open);
    const std::size_t s = std::stoul(text.substr(open + 1, colon - open - 1));
    const std::string what = text.substr(colon + 1, close - colon - 1);
    at = close + 1;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return std::find(g.slots.begin(), g.slots.end(), s) != g.slots.end();
    });
    const Ref& ref = slots_[s].ref;
    if (what != "w" && what != "e" && what != "q") {
      out += concat_text("b", group - groups.begin() + 1, "_", what);
      continue;
    }
    if (ref.scratch >= 0) continue;
    const LirValue& where = node_.lir().plan.at(ref.value);
    const std::size_t element = size_bytes(ref.dtype), unit = what == "w" ? 4 : what == "q" ? 16 : element;
    if (node_.graph().is_static()) {
      const std::size_t start = group->begin / kBindingAlignment * kBindingAlignment;
      check((where.offset - start) % unit == 0, "a value of a kernel is not aligned to its unit");
      if (where.offset != start) out += concat_text((where.offset - start) / unit, "u + ");
    } else if (where.is_view || group->slots.size() > 1) {
      const std::string n = number({Number::Kind::Offset, {}, ref.value, 0});
      // The offset is in bytes, since kernels that move words see other elements than the value has.
      out += unit == 1 ? concat_text(n, " + ") : concat_text(n, " / ", unit, "u + ");
    }
  }
  return out;
}

namespace {

// The accessors of binding `n` that the text `used` calls.
std::string accessors(std::size_t n, bool wide, const std::string& used) {
  const std::string b = concat_text("b", n);
  std::string out = concat_text("@group(0) @binding(", n, ") var<storage, read_write> ", b, ": array<",
                                wide ? "vec4<u32>" : "u32", ">;\n");
  const auto uses = [&](const char* what) { return used.find(concat_text(b, "_", what, "(")) != std::string::npos; };
  const bool narrow = uses("half") || uses("byte");
  if (uses("at") || narrow)
    out += concat_text("fn ", b, "_at(i: u32) -> u32 { return ", b, wide ? "[i >> 2u][i & 3u]" : "[i]", "; }\n");
  if (uses("half"))
    out += concat_text("fn ", b, "_half(i: u32) -> u32 { return ", b, "_at(i >> 1u) >> ((i & 1u) * 16u); }\n");
  if (uses("byte"))
    out += concat_text("fn ", b, "_byte(i: u32) -> u32 { return ", b, "_at(i >> 2u) >> ((i & 3u) * 8u); }\n");
  if (uses("put"))
    out += concat_text("fn ", b, "_put(i: u32, w: u32) { ", b, wide ? "[i >> 2u][i & 3u]" : "[i]", " = w; }\n");
  if (uses("at4")) out += concat_text("fn ", b, "_at4(i: u32) -> vec4<u32> { return ", b, "[i]; }\n");
  if (uses("put4")) out += concat_text("fn ", b, "_put4(i: u32, w: vec4<u32>) { ", b, "[i] = w; }\n");
  return out;
}

}  // namespace

void KernelBuilder::finish(const Dim& groups) {
  const std::vector<Group> bound = grouped();
  if (bound.size() > static_cast<std::size_t>(node_.dialect().max_bindings))
    check(false, concat_text("kernel ", kernel_.name, " has ", bound.size(), " bindings"));
  kernel_.groups = groups;
  std::string body = resolved(body_, bound), globals;
  for (const std::string& g : globals_) globals += resolved(g, bound);
  const bool tall = node_.upper(groups) > kMaxGroups;
  const std::string end = tall ? concat_text("if (GROUP >= ", size(Size(groups)), ") { return; }\n") : "";
  for (std::size_t i = 0; i < bound.size(); ++i) {
    Binding b;
    b.scratch = bound[i].scratch;
    if (b.scratch < 0)
      for (std::size_t s : bound[i].slots) b.values.push_back(slots_[s].ref.value);
    kernel_.bindings.push_back(std::move(b));
    kernel_.text += accessors(i + 1, bound[i].wide, globals + body);
  }
  if (!kernel_.numbers.empty())
    kernel_.text += concat_text("@group(0) @binding(0) var<uniform> P: array<vec4<u32>, ",
                                (kernel_.numbers.size() + 3) / 4, ">;\n");
  kernel_.text += globals;
  kernel_.text += concat_text("@compute @workgroup_size(", threads_,
                              ") fn main(@builtin(workgroup_id) group_id: vec3<u32>, "
                              "@builtin(local_invocation_index) LOCAL: u32",
                              tall ? ", @builtin(num_workgroups) group_count: vec3<u32>" : "",
                              ") {\nlet GROUP = group_id.x", tall ? " + group_id.y * group_count.x" : "",
                              ";\nlet THREAD = GROUP * ", threads_, "u + LOCAL;\n", end, body, "}\n");
  node_.add(std::move(kernel_));
}

void KernelBuilder::finish_threads(const Dim& threads) { finish(floordiv(threads + Dim(threads_ - 1), Dim(threads_))); }

void finish_map(KernelBuilder& k, const std::vector<Ref>& results, const std::string& statements,
                const std::vector<std::string>& values) {
  const Dim n = results.at(0).elements();
  const std::string count = k.size(Size(n));
  int elements = 1;  // elements per thread
  for (const Ref& r : results) elements = std::max(elements, elements_of_word(r.dtype));
  if (elements == 1) {
    k << "let i = THREAD;\nif (i >= " << count << ") { return; }\n" << statements;
    for (std::size_t r = 0; r < results.size(); ++r) k << k.store(results[r], "i", values[r]);
    k.finish_threads(n);
    return;
  }
  // The bits of the results of one element.
  std::string fields, bits;
  for (std::size_t r = 0; r < results.size(); ++r) {
    fields += concat_text("r", r, ": u32, ");
    bits += concat_text(r ? ", " : "", k.to_bits(results[r].dtype, values[r]));
  }
  k.global(concat_text("struct Element { ", fields, "}\nfn element(i: u32) -> Element {\n", statements,
                       "return Element(", bits, ");\n}\n"));
  k << "let first = THREAD * " << concat_text(elements, "u") << ";\nif (first >= " << count << ") { return; }\n";
  for (int e = 0; e < elements; ++e) {
    const std::string i = concat_text("first + ", e, "u"), name = concat_text("e", e);
    k << "var " << name << ": Element;\nif (" << i << " < " << count << ") { " << name << " = element(" << i
      << "); }\n";
  }
  for (std::size_t r = 0; r < results.size(); ++r) {
    const int per_word = elements_of_word(results[r].dtype), width = 32 / per_word;
    for (int w = 0; w < elements / per_word; ++w) {
      std::string word;
      for (int e = 0; e < per_word; ++e)
        word += concat_text(e ? " | " : "", "(e", w * per_word + e, ".r", r, " << ", e * width, "u)");
      const std::string first = concat_text("first + ", w * per_word, "u");
      if (w) k << "if (" << first << " < " << count << ") {\n";
      k << k.store_word(results[r], per_word == 1 ? first : concat_text("(", first, ") / ", per_word, "u"), word);
      if (w) k << "}\n";
    }
  }
  k.finish_threads(floordiv(n + Dim(elements - 1), Dim(elements)));
}

}  // namespace rlx::codegen
