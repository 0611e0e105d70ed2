// Bitonic networks (Batcher, "Sorting networks and their applications", 1968) of (key, place) pairs. All pairs differ,
// so the order is that of a stable sort.
#include "rlx/codegen/sorting.h"

#include <algorithm>

#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

constexpr std::int64_t kBlock = 1024;  // pairs that a workgroup sorts in shared memory, 8 KiB
constexpr int kSortThreads = 256;
static_assert(kFewOfBlocks <= kBlock / 4, "levels of blocks shrink");

std::int64_t power_of_two(std::int64_t n) {
  std::int64_t p = 2;
  while (p < n) p *= 2;
  return p;
}

// Compare and swap in the block: pairs [begin, begin + block) of a row of `n`.
constexpr const char* kSwap = R"(fn swap_pair(low: u32, high: u32, up: bool) {
  let a = keys[low];
  let b = keys[high];
  let p = places[low];
  let q = places[high];
  let after = a > b || (a == b && p > q);
  if (after == up) {
    keys[low] = b;
    keys[high] = a;
    places[low] = q;
    places[high] = p;
  }
}
)";

void declare_block(KernelBuilder& k, std::int64_t pairs) {
  k.global(
      concat_text("var<workgroup> keys: array<u32, ", pairs, ">;\nvar<workgroup> places: array<u32, ", pairs, ">;\n"));
  k.global(kSwap);
}

// Sorts runs of `row` pairs in a memory of `pairs`, each ascending. With `alternate` the direction follows the bits of
// the pair's index in its row, `begin + ..`.
std::string sort_block(std::int64_t pairs, std::int64_t row, bool alternate) {
  const std::string number = alternate ? "(begin + low)" : concat_text("(low & ", row - 1, "u)");
  return concat_text("for (var size = 2u; size <= ", row, "u; size = size << 1u) {\n",
                     "for (var half = size >> 1u; half > 0u; half = half >> 1u) {\n", "for (var t = LOCAL; t < ",
                     pairs / 2, "u; t = t + ", kSortThreads, "u) {\n",
                     "let low = ((t & ~(half - 1u)) << 1u) | (t & (half - 1u));\n", "swap_pair(low, low | half, (",
                     number, " & size) == 0u);\n}\nworkgroupBarrier();\n}\n}\n");
}

// The (key, place) of element j of a row: from a key text, or from an earlier level.
struct Source {
  const KeyText* key = nullptr;
  const SortedRows* level = nullptr;
  std::string load(KernelBuilder& k, const std::string& n, const std::string& to) const {
    std::string text = concat_text("var key = 0xffffffffu;\nvar place = 0xffffffffu;\nif (j < ", n, ") {\n");
    if (key) {
      const std::string value = (*key)(k, "row", "j");
      text += concat_text(k.take_body(), "key = ", value, ";\nplace = j;\n");
    } else {
      const std::string index = concat_text("row * ", k.size(Size(level->stride)), " + j");
      text += InOrder{"key = ", k.load(level->keys, index), ";\nplace = ", k.load(level->places, index), ";\n"};
    }
    return text + concat_text("}\nkeys[", to, "] = key;\nplaces[", to, "] = place;\n");
  }
};

SortedRows make_rows(NodeKernels& node, const Dim& rows, const Dim& stride) {
  return {node.scratch(DType::U32, {rows, stride}), node.scratch(DType::U32, {rows, stride}), stride};
}

// Sorts blocks of up to kBlock elements and keeps the first `keep` of each: [rows, blocks * keep].
SortedRows keep_of_blocks(NodeKernels& node, const Dim& rows, const Dim& n, std::int64_t keep, const Source& source) {
  const std::int64_t row = std::min(kBlock, power_of_two(node.upper(n)));
  const bool one = node.upper(n) <= kBlock;
  const std::int64_t packed = one ? std::max<std::int64_t>(1, 512 / row) : 1;  // rows per workgroup
  const Dim blocks = one ? Dim(1) : floordiv(n + Dim(kBlock - 1), Dim(kBlock));
  const SortedRows to = make_rows(node, rows, blocks * Dim(keep));
  KernelBuilder k(node, "sort", kSortThreads);
  declare_block(k, row * packed);
  const std::string count = k.size(Size(n)), all = k.size(Size(rows));
  const std::string load = source.load(k, count, "t");
  k << concat_text("for (var t = LOCAL; t < ", row * packed, "u; t = t + ", kSortThreads, "u) {\n");
  if (one)
    k << concat_text("let row = min(GROUP * ", packed, "u + t / ", row, "u, ", all, " - 1u);\nlet j = t & ", row - 1,
                     "u;\n");
  else
    k << "let row = GROUP / " << k.size(Size(blocks)) << ";\nlet j = GROUP % " << k.size(Size(blocks))
      << concat_text(" * ", kBlock, "u + t;\n");
  k << load << "}\nworkgroupBarrier();\n" << sort_block(row * packed, row, false);
  k << concat_text("for (var t = LOCAL; t < ", keep * packed, "u; t = t + ", kSortThreads, "u) {\n");
  if (one)
    k << concat_text("let row = GROUP * ", packed, "u + t / ", keep, "u;\nif (row < ", all,
                     ") {\nlet from_place = t / ", keep, "u * ", row, "u + t % ", keep, "u;\nlet to = row * ", keep,
                     "u + t % ", keep, "u;\n")
      << k.store(to.keys, "to", "keys[from_place]") << k.store(to.places, "to", "places[from_place]") << "}\n}\n";
  else
    k << concat_text("let to = GROUP * ", keep, "u + t;\n") << k.store(to.keys, "to", "keys[t]")
      << k.store(to.places, "to", "places[t]") << "}\n";
  k.finish(one ? floordiv(rows + Dim(packed - 1), Dim(packed)) : rows * blocks);
  return to;
}

// Sorts the blocks of a long row, alternately ascending and descending.
void sort_long_blocks(NodeKernels& node, const Dim& rows, const Dim& n, const KeyText& key, const SortedRows& to,
                      std::int64_t blocks) {
  KernelBuilder k(node, "sort_blocks", kSortThreads);
  declare_block(k, kBlock);
  const Source source{&key, nullptr};
  const std::string load = source.load(k, k.size(Size(n)), "t");
  k << concat_text("let row = GROUP / ", blocks, "u;\nlet begin = GROUP % ", blocks, "u * ", kBlock, "u;\n");
  k << concat_text("for (var t = LOCAL; t < ", kBlock, "u; t = t + ", kSortThreads, "u) {\nlet j = begin + t;\n")
    << load << "if (j >= " << k.size(Size(n)) << ") { places[t] = j; }\n}\nworkgroupBarrier();\n"
    << sort_block(kBlock, kBlock, true);
  k << concat_text("for (var t = LOCAL; t < ", kBlock, "u; t = t + ", kSortThreads, "u) {\nlet to = GROUP * ", kBlock,
                   "u + t;\n")
    << k.store(to.keys, "to", "keys[t]") << k.store(to.places, "to", "places[t]") << "}\n";
  k.finish(rows * Dim(blocks));
}

// One merge step between pairs of different blocks.
void merge_remote(NodeKernels& node, const Dim& rows, const SortedRows& data, std::int64_t padded, std::int64_t size,
                  std::int64_t half) {
  KernelBuilder k(node, "merge_remote", kSortThreads);
  const std::string step = k.given(Size(half)), whole = k.given(Size(size));
  k << concat_text("let row = THREAD / ", padded / 2, "u;\nlet t = THREAD % ", padded / 2,
                   "u;\nif (row >= ", k.size(Size(rows)), ") { return; }\n")
    << "let half = " << step << ";\nlet place = ((t & ~(half - 1u)) << 1u) | (t & (half - 1u));\n"
    << concat_text("let low = row * ", padded, "u + place;\nlet high = low + half;\n") << "let up = (place & " << whole
    << ") == 0u;\n";
  k << "let a = " << k.load(data.keys, "low") << ";\nlet b = " << k.load(data.keys, "high")
    << ";\nlet p = " << k.load(data.places, "low") << ";\nlet q = " << k.load(data.places, "high") << ";\n"
    << "let after = a > b || (a == b && p > q);\nif (after == up) {\n"
    << k.store(data.keys, "low", "b") << k.store(data.keys, "high", "a") << k.store(data.places, "low", "q")
    << k.store(data.places, "high", "p") << "}\n";
  k.finish_threads(rows * Dim(padded / 2));
}

// The merge steps between pairs of one block.
void merge_near(NodeKernels& node, const Dim& rows, const SortedRows& data, std::int64_t blocks, std::int64_t size) {
  KernelBuilder k(node, "merge_near", kSortThreads);
  declare_block(k, kBlock);
  const std::string whole = k.given(Size(size));
  const std::string each = concat_text("for (var t = LOCAL; t < ", kBlock, "u; t = t + ", kSortThreads,
                                       "u) {\nlet to = GROUP * ", kBlock, "u + t;\n");
  k << concat_text("let begin = GROUP % ", blocks, "u * ", kBlock, "u;\nlet up = (begin & ", whole, ") == 0u;\n")
    << each << "keys[t] = " << k.load(data.keys, "to") << ";\nplaces[t] = " << k.load(data.places, "to")
    << ";\n}\nworkgroupBarrier();\n"
    << concat_text("for (var half = ", kBlock / 2, "u; half > 0u; half = half >> 1u) {\nfor (var t = LOCAL; t < ",
                   kBlock / 2, "u; t = t + ", kSortThreads, "u) {\n")
    << "let low = ((t & ~(half - 1u)) << 1u) | (t & (half - 1u));\nswap_pair(low, low | half, up);\n}\n"
    << "workgroupBarrier();\n}\n"
    << each << k.store(data.keys, "to", "keys[t]") << k.store(data.places, "to", "places[t]") << "}\n";
  k.finish(rows * Dim(blocks));
}

}  // namespace

SortedRows sorted_rows(NodeKernels& node, const Dim& rows, const Dim& n, const KeyText& key) {
  const std::int64_t padded = power_of_two(node.upper(n));
  if (padded <= kBlock) return keep_of_blocks(node, rows, n, padded, {&key, nullptr});
  const SortedRows data = make_rows(node, rows, Dim(padded));
  const std::int64_t blocks = padded / kBlock;
  sort_long_blocks(node, rows, n, key, data, blocks);
  for (std::int64_t size = 2 * kBlock; size <= padded; size *= 2) {
    for (std::int64_t half = size / 2; half >= kBlock; half /= 2) merge_remote(node, rows, data, padded, size, half);
    merge_near(node, rows, data, blocks, size);
  }
  return data;
}

SortedRows first_of_rows(NodeKernels& node, const Dim& rows, const Dim& n, std::int64_t count, const KeyText& key) {
  if (node.upper(n) <= kBlock) return keep_of_blocks(node, rows, n, count, {&key, nullptr});
  if (count > kFewOfBlocks) return sorted_rows(node, rows, n, key);
  SortedRows level = keep_of_blocks(node, rows, n, count, {&key, nullptr});
  while (node.upper(level.stride) > kBlock) {
    const SortedRows from = level;
    level = keep_of_blocks(node, rows, from.stride, count, {nullptr, &from});
  }
  const SortedRows from = level;
  return keep_of_blocks(node, rows, from.stride, count, {nullptr, &from});
}

ScratchBytes sorted_bytes(std::int64_t rows, std::int64_t n) {
  const std::uint64_t keys = 4 * static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(power_of_two(n));
  return {keys, 2 * keys};  // keys and places
}

std::string sort_key(KernelBuilder& k, DType t, const std::string& x, bool descending) {
  std::string key = x;
  if (is_float(t)) {
    k.use("order_f32");
    key = concat_text("(bitcast<u32>(order_f32(", x, ")) ^ 0x80000000u)");
  } else if (is_signed_int(t)) {
    key = concat_text("(bitcast<u32>(", x, ") ^ 0x80000000u)");
  }
  return descending ? concat_text("(~", key, ")") : key;
}

}  // namespace rlx::codegen
