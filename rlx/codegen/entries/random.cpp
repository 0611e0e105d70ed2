// Kernel entries: random bits.
#include "rlx/ir/ops/random.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/moves.h"

namespace rlx::codegen {
namespace {

const char* rng_refuses(const Graph&, NodeId) { return nullptr; }

void write_rng_bits(NodeKernels& node) {
  const Ref out = node.out(), key = node.in(0);
  if (out.elements().is_static(0)) return;
  KernelBuilder k(node, "rng_bits");
  k.use("threefry");
  const int keys = key.rank() - 1;
  const std::string each = k.size(Size(out.extent(keys, out.rank())));
  std::string text = concat_text("let row = i / ", each, ";\nlet place = i % ", each, ";\n");
  std::string low = "place", high = "0u";
  if (node.num_inputs() > 1) {
    const Ref first = node.in(1);
    const std::string row = first.rank() == 0 ? "0u" : "row * 2u";
    text +=
        concat_text("let low = ", k.load_word(first, row), " + place;\nlet high = ", k.load_word(first, row + " + 1u"),
                    " + select(0u, 1u, low < place);\n");
    low = "low", high = "high";
  }
  text += concat_text("let bits = threefry(vec2<u32>(", k.load(key, "row * 2u"), ", ", k.load(key, "row * 2u + 1u"),
                      "), vec2<u32>(", high, ", ", low, "));\n");
  if (out.dtype != DType::U64) return finish_map(k, {out}, text, {"bits.x ^ bits.y"});
  const Dim count = out.elements();
  k << "let i = THREAD;\nif (i >= " << k.size(Size(count)) << ") { return; }\n"
    << text << k.store_word(out, "i * 2u", "bits.y") << k.store_word(out, "i * 2u + 1u", "bits.x");
  k.finish_threads(count);
}

constexpr KernelEntry kRandomEntries[] = {{OpKind::RngBits, "rng_bits", rng_refuses, write_rng_bits}};

}  // namespace

std::span<const KernelEntry> random_entries() { return kRandomEntries; }

}  // namespace rlx::codegen
