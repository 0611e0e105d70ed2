// WGSL that decodes quantized values: affine ones with their scales, and block schemes by the description of their
// layout.
#include "rlx/codegen/decoder.h"

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx::codegen {
namespace {

constexpr int kScale = 1, kZeroPoint = 2, kGlobalScale = 3;  // indices of the operands

bool is_nibble(DType t) { return t == DType::I4 || t == DType::U4; }

// Operand `place`, or null.
const Value* operand(const Graph& g, NodeId id, int place) {
  const auto& op = g.node(id).op.as<ops::Dequantize>();
  if (place > 0 && !op.present.has(place)) return nullptr;
  std::size_t i = 0;
  for (int p = 1; p < place; ++p) i += op.present.has(p) ? 1 : 0;
  return &g.node(id).inputs[place == 0 ? 0 : i + 1];
}

// Quantized values are read as integers of up to 16 bits, whose differences are exact in f32.
bool reads_quantized(DType t) { return is_nibble(t) || (computes(t) && is_int(t) && dtype_bits(t) <= 16); }

// Quantized value `i` of 4-bit values, eight per word.
std::string nibble(KernelBuilder& k, const Ref& codes, std::string_view i) {
  const std::string word =
      concat_text("(", k.load_word(codes, concat_text("(", i, ") >> 3u")), " >> (((", i, ") & 7u) * 4u))");
  return codes.dtype == DType::U4 ? concat_text("i32(", word, " & 15u)")
                                  : concat_text("(bitcast<i32>(", word, " << 28u) >> 28u)");
}

}  // namespace

const char* decoder_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Dequantize>();
  if (!computes(op.dtype)) return "WGSL has no type for the dtype of the result";
  if (is_block_scheme(op.scheme))
    return block_layout(op.scheme).plain()
               ? nullptr
               : "its block scheme has lookup tables or units that the kernel does not decode";
  if (!reads_quantized(g.shape(*operand(g, id, 0)).dtype()))
    return "its quantized values are not integers of up to 16 bits";
  for (int place : {kScale, kGlobalScale})
    if (const Value* v = operand(g, id, place))
      if (!computes(g.shape(*v).dtype()) || !is_float(g.shape(*v).dtype()))
        return "its scales are not f32, f16 or bf16";
  return nullptr;
}

std::size_t decoder_operands(const Graph& g, NodeId id) { return g.node(id).inputs.size(); }

Decoder::Decoder(KernelBuilder& k, NodeId id, std::string_view name)
    : k_(k), g_(k.node().graph()), id_(id), name_(name) {
  if (is_block_scheme(g_.node(id).op.as<ops::Dequantize>().scheme))
    blocks();
  else
    affine();
}

std::string Decoder::element(std::string_view i) { return concat_text(name_, "_at(", i, ")"); }
std::string Decoder::four(std::string_view i) { return concat_text(name_, "_four(", i, ")"); }
std::string Decoder::scale(std::string_view i) const { return concat_text(name_, "_scale(", i, ")"); }
std::string Decoder::four(std::string_view i, std::string_view scale) const {
  return concat_text(name_, "_scaled(", i, ", ", scale, ")");
}

int Decoder::group() const {
  const auto& op = g_.node(id_).op.as<ops::Dequantize>();
  return is_block_scheme(op.scheme) ? block_layout(op.scheme).group : 0;
}

// -- affine --

std::string Decoder::code(std::string_view i) const {
  const Ref codes = dense_ref(g_, *operand(g_, id_, 0));
  return is_nibble(codes.dtype) ? nibble(k_, codes, i) : concat_text("i32(", k_.load(codes, i), ")");
}

// The index of the scale of element i.
std::string Decoder::scale_place(std::string_view i) const {
  const auto& op = g_.node(id_).op.as<ops::Dequantize>();
  if (!op.axis) return "0u";
  const Ref whole = dense_ref(g_, *operand(g_, id_, 0));
  const int axis = static_cast<int>(*op.axis);
  const std::string inner = k_.size(Size(whole.extent(axis + 1, whole.rank()))),
                    extent = k_.size(Size(whole.dim(axis)));
  const std::string along = concat_text("((", i, ") / ", inner, " % ", extent, ")");
  if (op.block == 0) return along;
  const std::string blocks = k_.size(Size(floordiv(whole.dim(axis) + Dim(op.block - 1), Dim(op.block))));
  return concat_text("(((", i, ") / ", inner, " / ", extent, " * ", blocks, " + ", along, " / ", op.block, "u) * ",
                     inner, " + (", i, ") % ", inner, ")");
}

void Decoder::affine() {
  const auto& op = g_.node(id_).op.as<ops::Dequantize>();
  const Value *scale = operand(g_, id_, kScale), *zero = operand(g_, id_, kZeroPoint),
              *global = operand(g_, id_, kGlobalScale);
  // q - z is exact; the product is rounded.
  const auto decoded = [&](std::string_view q, std::string_view at) {
    std::string y(q);
    if (zero) {
      const Ref z = dense_ref(g_, *zero);
      y = concat_text("(", y, " - ", is_nibble(z.dtype) ? nibble(k_, z, at) : concat_text("i32(", k_.load(z, at), ")"),
                      ")");
    }
    y = concat_text("f32(", y, ")");
    if (!scale) return y;
    std::string s = k_.load(dense_ref(g_, *scale), at);
    if (global) s = concat_text("(", s, " * ", k_.load(dense_ref(g_, *global), "0u"), ")");
    return concat_text(y, " * ", s);
  };
  k_.global(concat_text("fn ", name_, "_at(i: u32) -> f32 {\nlet at = ", scale_place("i"), ";\nreturn ",
                        decoded(code("i"), "at"), ";\n}\n"));
  // Four elements with one scale read it once.
  const Ref codes = dense_ref(g_, *operand(g_, id_, 0));
  const int last = codes.rank() - 1;
  const bool one = !op.axis || static_cast<int>(*op.axis) < last || op.block % 4 == 0;
  // the scales of consecutive elements are contiguous
  const bool apart = op.axis && static_cast<int>(*op.axis) < last && op.block > 0;
  std::string lanes;
  if (codes.rank() == 0 || (is_nibble(codes.dtype) && last < 0)) return;
  const bool shared = one && !apart && !(op.axis && static_cast<int>(*op.axis) == last && op.block == 0);
  for (int e = 0; e < 4; ++e) {
    const std::string at = e ? concat_text("i + ", e, "u") : "i";
    std::string q = "q." + std::string(1, "xyzw"[e]);
    lanes += concat_text(e ? ", " : "", decoded(q, shared ? std::string("at") : scale_place(at)));
  }
  std::string q;
  if (is_nibble(codes.dtype)) {
    q = concat_text("let w = ", k_.load_word(codes, "i >> 3u"), " >> ((i & 4u) * 4u);\n");
    q += codes.dtype == DType::U4
             ? "let q = vec4<i32>((vec4<u32>(w) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));\n"
             : "let q = bitcast<vec4<i32>>(vec4<u32>(w) << vec4<u32>(28u, 24u, 20u, 16u)) >> vec4<u32>(28u);\n";
  } else if (dtype_bits(codes.dtype) == 8) {
    q = concat_text("let w = ", k_.load_word(codes, "i >> 2u"), ";\n");
    q += codes.dtype == DType::U8
             ? "let q = vec4<i32>((vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));\n"
             : "let q = bitcast<vec4<i32>>(vec4<u32>(w) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);\n";
  } else {
    q = concat_text("let q = vec4<i32>(", code("i"), ", ", code("i + 1u"), ", ", code("i + 2u"), ", ", code("i + 3u"),
                    ");\n");
  }
  k_.global(concat_text("fn ", name_, "_four(i: u32) -> vec4<f32> {\n", q,
                        shared ? concat_text("let at = ", scale_place("i"), ";\n") : std::string(), "return vec4<f32>(",
                        lanes, ");\n}\n"));
}

// -- blocks --

void Decoder::blocks() {
  const auto& op = g_.node(id_).op.as<ops::Dequantize>();
  const BlockLayout& l = block_layout(op.scheme);
  const Ref codes = dense_ref(g_, *operand(g_, id_, 0));
  const std::string n = name_;
  k_.use("f16_to_f32");
  // Bytes p to p + 3, p even. Nothing is read behind the value's last word.
  k_.global(concat_text("fn ", n, "_word(p: u32) -> u32 {\nlet low = ", k_.load_word(codes, "p >> 2u"), ";\n",
                        l.bytes % 4 == 0 ? "return low;\n}\n"
                                         : concat_text("if ((p & 2u) == 0u) { return low; }\nreturn (low >> 16u) | (",
                                                       k_.load_word(codes, "(p >> 2u) + 1u"), " << 16u);\n}\n")));
  k_.global(concat_text("fn ", n, "_byte(p: u32) -> u32 { return (", k_.load_word(codes, "p >> 2u"),
                        " >> ((p & 3u) * 8u)) & 255u; }\n"));
  k_.global(concat_text("fn ", n, "_half(p: u32) -> f32 { return f16_to_f32((", k_.load_word(codes, "p >> 2u"),
                        " >> ((p & 2u) * 8u)) & 0xffffu); }\n"));
  const auto byte = [&](const std::string& at) { return concat_text(n, "_byte(b + ", at, ")"); };
  // Four quantized values of a field, those of elements e to e + 3, as a vec4<u32>.
  const auto field = [&](const BlockBits& bits) {
    const int shifts = 8 / bits.width, of_run = shifts * bits.run, mask = (1 << bits.width) - 1;
    const std::string masked = concat_text(" & vec4<u32>(", mask, "u)");
    if (bits.run % 4 != 0) {  // the elements of a byte are consecutive, at least four
      const std::string lanes =
          concat_text("vec4<u32>(0u, ", bits.width, "u, ", 2 * bits.width, "u, ", 3 * bits.width, "u)");
      return concat_text("((vec4<u32>(", byte(concat_text(bits.at, "u + e / ", shifts, "u")), ") >> (vec4<u32>((e % ",
                         shifts, "u) * ", bits.width, "u) + ", lanes, "))", masked, ")");
    }
    const std::string place = concat_text(bits.at, "u + e / ", of_run, "u * ", bits.run, "u + e % ", bits.run, "u");
    const std::string shift = concat_text("vec4<u32>((e % ", of_run, "u) / ", bits.run, "u * ", bits.width, "u)");
    return concat_text("((vec4<u32>(", n, "_word(b + ", place, ")) >> (", shift, " + vec4<u32>(0u, 8u, 16u, 24u)))",
                       masked, ")");
  };
  const std::string place =
      concat_text("let b = i / ", l.elements, "u * ", l.bytes, "u;\nlet e = i % ", l.elements, "u;\n");
  std::string quantized_text = concat_text(place, "var q = ", field(l.low), ";\n");
  if (l.high.bytes) quantized_text += concat_text("q = q | (", field(l.high), " << vec4<u32>(", l.low.width, "u));\n");
  if (l.low.width == 8)
    quantized_text += "let c = vec4<f32>(bitcast<vec4<i32>>(q << vec4<u32>(24u)) >> vec4<u32>(24u));\n";
  else
    quantized_text += concat_text("let c = vec4<f32>(q) - vec4<f32>(", l.offset, ".0);\n");
  std::string text = concat_text(place, "let g = e / ", l.group, "u;\nlet d = ", n, "_half(b + ", l.d_at, "u);\n");
  const auto at = [&](int offset) { return concat_text(l.scales_at + offset, "u"); };
  std::string scale, min;
  switch (l.scales) {
    case GroupScales::None: break;
    case GroupScales::Nibbles:
      text += concat_text("let s = ", byte(at(0) + " + g"), ";\n");
      scale = "f32(s & 15u)", min = "f32(s >> 4u)";
      break;
    case GroupScales::SixBitPairs:
      text += concat_text("let j = g & 3u;\nlet own = ", byte(at(0) + " + j"), ";\nlet low = ", byte(at(4) + " + j"),
                          ";\nlet top = ", byte(at(8) + " + j"), ";\n");
      scale = "f32(select(own & 63u, (top & 15u) | ((own >> 2u) & 48u), g > 3u))";
      min = "f32(select(low & 63u, (top >> 4u) | ((low >> 2u) & 48u), g > 3u))";
      break;
    case GroupScales::SixBits:
      text += concat_text("let s = ((", byte(at(0) + " + (g & 7u)"), " >> ((g >> 3u) * 4u)) & 15u) | (((",
                          byte(at(8) + " + (g & 3u)"), " >> ((g >> 2u) * 2u)) & 3u) << 4u);\n");
      scale = "f32(i32(s) - 32)";
      break;
    case GroupScales::SignedBytes:
      text += concat_text("let s = ", byte(at(0) + " + g"), ";\n");
      scale = "f32(bitcast<i32>(s << 24u) >> 24u)";
      break;
    case GroupScales::SplitSixBits:
    case GroupScales::E4M3: check(false, "a block scheme has scales that decoder_refuses should have refused"); break;
  }
  // y = c s.x + s.y
  const std::string factor = scale.empty() ? "d" : concat_text("d * ", scale);
  const std::string m = l.m_at < 0 ? std::string() : concat_text(n, "_half(b + ", l.m_at, "u)");
  text += concat_text("return vec2<f32>(", factor, ", ",
                      m.empty()  ? "0.0"
                      : l.adds_m ? m
                                 : concat_text("-(", m, " * ", min, ")"),
                      ");\n");
  k_.global(concat_text("fn ", n, "_scale(i: u32) -> vec2<f32> {\n", text, "}\n"));
  k_.global(concat_text("fn ", n, "_scaled(i: u32, s: vec2<f32>) -> vec4<f32> {\n", quantized_text, "return c * s.x",
                        m.empty() ? "" : " + vec4<f32>(s.y)", ";\n}\n"));
  k_.global(concat_text("fn ", n, "_four(i: u32) -> vec4<f32> { return ", n, "_scaled(i, ", n, "_scale(i)); }\n"));
  k_.global(concat_text("fn ", n, "_at(i: u32) -> f32 { return ", n, "_four(i & ~3u)[i & 3u]; }\n"));
}

}  // namespace rlx::codegen
