// Writes the kernels of reductions, in one or several passes.
#include "rlx/codegen/reductions.h"

#include <algorithm>
#include <cmath>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

// Terms that one thread sums serially. Sums of more terms are sums of such sums.
constexpr std::int64_t kChain = 64;
constexpr std::int64_t kGroupTerms = 16384;  // per workgroup: a chain of 64 terms for each of its threads
constexpr int kGroupThreads = 256;

std::vector<std::string> numbered(const char* letter, const Dims& dims) {
  std::vector<std::string> names;
  for (std::size_t a = 0; a < dims.size(); ++a) names.push_back(concat_text(letter, a));
  return names;
}

Dim ceil_div(const Dim& a, std::int64_t b) { return floordiv(a + Dim(b - 1), Dim(b)); }

// One pass. It reads x, or the result `from` of an earlier pass as [combined, kept].
class Pass {
 public:
  Pass(NodeKernels& node, const Reduction& r, const Folded& x) : node_(node), r_(r), x_(x) {}

  // A thread combines up to `length` terms, or all terms when `length` is 0.
  void chains(const Ref* from, const Dim& terms, std::int64_t length, const Ref& to, bool last) {
    KernelBuilder k(node_, r_.name);
    const Dim kept = x_.kept.elements();
    const std::string count = k.size(Size(terms));
    std::string text;
    if (length != 0)
      text = concat_text("let chunk = i / ", k.size(Size(kept)), ";\nlet row = i % ", k.size(Size(kept)),
                         ";\nlet begin = chunk * ", length, "u;\nlet end = min(begin + ", length, "u, ", count, ");\n");
    else
      text = concat_text("let row = i;\nlet begin = 0u;\nlet end = ", count, ";\n");
    text += walk(k, from, "begin", "1u");
    if (last) {
      text += concat_text("let y = ", r_.last(k, "all"), ";\n");
      finish_map(k, {to}, text, {"y"});
      return;
    }
    const Dim threads = kept * ceil_div(terms, length);
    k << "let i = THREAD;\nif (i >= " << k.size(Size(threads)) << ") { return; }\n" << text << store(k, to, "i");
    k.finish_threads(threads);
  }

  // A workgroup combines up to kGroupTerms terms of a row.
  void groups(const Ref* from, const Dim& terms, const Ref& to, bool last) {
    const bool few = node_.upper(terms) <= 1024;
    const int threads = few ? 64 : kGroupThreads;
    KernelBuilder k(node_, r_.name, threads);
    const Dim kept = x_.kept.elements(), chunks = ceil_div(terms, kGroupTerms);
    k.global(concat_text("var<workgroup> shares: array<", r_.type, ", ", threads, ">;\n"));
    k << "let chunk = GROUP / " << k.size(Size(kept)) << ";\nlet row = GROUP % " << k.size(Size(kept)) << ";\n";
    k << concat_text("let begin = chunk * ", kGroupTerms, "u;\nlet end = min(begin + ", kGroupTerms, "u, ",
                     k.size(Size(terms)), ");\n");
    k << walk(k, from, "begin + LOCAL", concat_text(threads, "u"));
    k << "shares[LOCAL] = all;\nworkgroupBarrier();\n";
    k << concat_text("for (var half = ", threads / 2, "u; half > 0u; half = half >> 1u) {\n")
      << "if (LOCAL < half) { shares[LOCAL] = " << r_.combine(k, "shares[LOCAL]", "shares[LOCAL + half]")
      << "; }\nworkgroupBarrier();\n}\n";
    k << "if (LOCAL == 0u) {\nlet sum = shares[0];\n";
    if (last)
      k << k.store(to, "row", r_.last(k, "sum"));
    else
      k << "let all = sum;\n" << store(k, to, "GROUP");
    k << "}\n";
    k.finish(last ? kept : kept * chunks);  // a row without terms has a workgroup too
  }

 private:
  // Combines in `all` the terms first, first + step, .. below `end` of row `row`.
  std::string walk(KernelBuilder& k, const Ref* from, const std::string& first, const std::string& step) {
    std::string text = concat_text("var all = ", r_.identity(k), ";\n"), term;
    if (from) {
      const std::string index = concat_text("(j * ", k.size(Size(x_.kept.elements())), " + row)");
      term = r_.words == 1 ? k.load(*from, index)
                           : concat_text(r_.type, "(bitcast<i32>(", k.load_word(*from, index + " * 2u"),
                                         "), bitcast<i32>(", k.load_word(*from, index + " * 2u + 1u"), "))");
    } else {
      const auto c = numbered("c", x_.kept.dims), d = numbered("d", x_.combined.dims);
      text += k.split("row", x_.kept.dims, c);
      text += concat_text("let base = ", k.at(x_.kept, c), ";\n");
      term = r_.term(k, k.load(x_.kept, concat_text("base + ", k.at(x_.combined, d))), "j");
      text +=
          concat_text("for (var j = ", first, "; j < end; j = j + ", step, ") {\n", k.split("j", x_.combined.dims, d),
                      "let term = ", term, ";\nall = ", r_.combine(k, "all", "term"), ";\n}\n");
      return text;
    }
    return text + concat_text("for (var j = ", first, "; j < end; j = j + ", step, ") {\nlet term = ", term,
                              ";\nall = ", r_.combine(k, "all", "term"), ";\n}\n");
  }
  std::string store(KernelBuilder& k, const Ref& to, const std::string& index) {
    if (r_.words == 1) return k.store(to, index, "all");
    return k.store_word(to, index + " * 2u", "bitcast<u32>(all.x)") +
           k.store_word(to, index + " * 2u + 1u", "bitcast<u32>(all.y)");
  }

  NodeKernels& node_;
  const Reduction& r_;
  const Folded& x_;
};

DType partial_dtype(const Reduction& r) {
  return r.words == 2 || r.type == "u32" ? DType::U32 : r.type == "i32" ? DType::I32 : DType::F32;
}

}  // namespace

Folded::Folded(const Ref& x, const std::vector<std::int64_t>& axes) : kept(x), combined(x) {
  kept.dims.clear(), kept.strides.clear(), combined.dims.clear(), combined.strides.clear();
  for (int a = 0; a < x.rank(); ++a) {
    Ref& r = std::find(axes.begin(), axes.end(), a) != axes.end() ? combined : kept;
    r.dims.push_back(x.dim(a));
    r.strides.push_back(x.stride(a));
  }
  for (Ref* r : {&kept, &combined}) {
    std::vector<Ref> one{*r};
    join_axes(one);
    *r = one[0];
  }
}

void reduce_elements(NodeKernels& node, const Reduction& r, const Folded& x, const Ref& out) {
  if (out.elements().is_static(0)) return;
  Pass pass(node, r, x);
  Dim terms = x.combined.elements();
  if (node.upper(terms) <= kChain) return pass.chains(nullptr, terms, 0, out, true);
  // When kept axes are contiguous, neighbouring threads take neighbouring columns. Otherwise the threads of a workgroup
  // share a row.
  const bool columns = x.kept.strides.back().is(1) && node.upper(x.kept.dims.back()) >= 32;
  Ref from{};
  const Ref* source = nullptr;
  const auto partial = [&](const Dim& count) {
    Dims dims{count, x.kept.elements()};
    if (r.words == 2) dims.push_back(Dim(2));
    return node.scratch(partial_dtype(r), dims);
  };
  if (columns) {
    while (node.upper(terms) > kChain) {
      const Ref to = partial(ceil_div(terms, kChain));
      pass.chains(source, terms, kChain, to, false);
      terms = ceil_div(terms, kChain);
      from = to, source = &from;
    }
    return pass.chains(source, terms, 0, out, true);
  }
  while (node.upper(terms) > kGroupTerms) {
    const Ref to = partial(ceil_div(terms, kGroupTerms));
    pass.groups(source, terms, to, false);
    terms = ceil_div(terms, kGroupTerms);
    from = to, source = &from;
  }
  if (source && node.upper(terms) <= kChain) return pass.chains(source, terms, 0, out, true);
  const Ref whole = unpacked(node, out);
  pass.groups(source, terms, whole, true);
  pack(node, out, whole);
}

Reduction reduction_of(Combining fn, DType t) {
  Reduction r;
  r.type = compute_type(t);
  r.term = [](KernelBuilder&, const std::string& x, const std::string&) { return x; };
  r.last = [](KernelBuilder&, const std::string& all) { return all; };
  const bool floats = is_float(t), ordered = fn == Combining::Max || fn == Combining::Min, max = fn == Combining::Max;
  r.identity = [=](KernelBuilder& k) {
    if (!ordered) return literal(k, floats ? DType::F32 : t, fn == Combining::Prod ? 1 : 0);
    if (floats) {
      k.use("f32_of");
      return std::string(max ? "f32_of(0xff800000u)" : "f32_of(0x7f800000u)");
    }
    if (t == DType::Bool) return std::string(max ? "0u" : "1u");
    const double bits = dtype_bits(t), low = is_signed_int(t) ? -std::exp2(bits - 1) : 0,
                 high = std::exp2(is_signed_int(t) ? bits - 1 : bits) - 1;
    return literal(k, t, max ? low : high);
  };
  r.combine = [=](KernelBuilder& k, const std::string& a, const std::string& b) {
    if (!ordered) return concat_text("(", a, fn == Combining::Sum ? " + " : " * ", b, ")");
    const std::string name = floats ? (max ? "max_f32" : "min_f32") : (max ? "max" : "min");
    if (floats) k.use(name);
    return concat_text(name, "(", a, ", ", b, ")");
  };
  return r;
}

Ref unpacked(NodeKernels& node, const Ref& out) {
  if (size_bytes(out.dtype) == 4) return out;
  const std::string_view type = compute_type(out.dtype);
  return node.scratch(type == "f32" ? DType::F32 : type == "i32" ? DType::I32 : DType::U32, out.dims);
}

void pack(NodeKernels& node, const Ref& out, const Ref& from) {
  if (from.scratch < 0) return;
  KernelBuilder k(node, "pack");
  finish_elements(k, {{from}, {out}, {}, {"x0"}});
}

}  // namespace rlx::codegen
