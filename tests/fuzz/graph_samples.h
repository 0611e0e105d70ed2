// Damaged op samples for the graph fuzz targets: one graph per sample, edited at random places.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/verify.h"
#include "rlx/testing/op_samples.h"

namespace rlx::fuzz {

/// A graph for every sample of every op, with all results as outputs.
inline const std::vector<Graph>& sample_graphs() {
  static const auto* graphs = [] {
    auto* out = new std::vector<Graph>();
    for (const OpDef* def : all_op_defs()) {
      for (const testing::Sample& s : testing::op_samples(*def)) {
        Graph g("g");
        std::vector<Value> operands, outputs;
        for (std::size_t i = 0; i < s.inputs.size(); ++i)
          operands.push_back(g.input("in" + std::to_string(i), s.inputs[i].shape));
        NodeId id = g.add(s.op, operands).value().node;
        for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r) outputs.emplace_back(id, r);
        g.set_outputs(outputs);
        out->push_back(std::move(g));
      }
    }
    return out;
  }();
  return *graphs;
}

/// A generator that every input seeds differently.
inline std::mt19937_64 random_of(const std::uint8_t* data, std::size_t size) {
  Fingerprint f = fingerprint_bytes(data, size);
  return std::mt19937_64(f.low);
}

/// 1 to 4 edits: numbers changed, bytes overwritten, flipped, inserted, erased, or a piece copied elsewhere.
inline void damage(std::string& s, std::mt19937_64& random) {
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % (n == 0 ? 1 : n)); };
  static const char* const kWords[] = {"%0",
                                       "%1",
                                       "#1",
                                       ":2",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "(",
                                       ")",
                                       ",",
                                       "none",
                                       "inf",
                                       "-1",
                                       "0",
                                       "64",
                                       "9223372036854775807",
                                       "n",
                                       "2*n + 1",
                                       "floordiv(n, 2)",
                                       "f32",
                                       "i4",
                                       "bool",
                                       "c64",
                                       "0x",
                                       "\"",
                                       "graph @g {",
                                       "return %0",
                                       "symbol n"};
  for (std::size_t edits = 1 + below(4); edits-- > 0;) {
    std::size_t at = below(s.size());
    switch (below(12)) {
      case 0:
        if (!s.empty()) s[at] = static_cast<char>(random());
        break;
      case 1:
        if (!s.empty()) s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        break;
      case 2: s.insert(at, kWords[below(std::size(kWords))]); break;
      case 3: s.erase(at, 1 + below(12)); break;
      case 4: s.insert(below(s.size()), s.substr(at, 1 + below(40))); break;
      case 5: {
        const char* word = kWords[below(std::size(kWords))];
        s.replace(at, std::strlen(word), word);
        break;
      }
      case 6:
      case 7:
      case 8:
      case 9:
      case 10: {
        // A number for a number keeps the text well-formed, so that the edit reaches the rules of the op.
        static const char* const kNumbers[] = {
            "0", "1", "2", "3", "-1", "7", "64", "9223372036854775807", "4611686018427387904", "0.5", "n", "n + 1"};
        std::size_t digit = s.find_first_of("0123456789", at);
        if (digit != std::string::npos) s.replace(digit, 1, kNumbers[below(std::size(kNumbers))]);
        break;
      }
      default: {
        static constexpr std::uint64_t kValues[] = {0, 1, 2, 0x7f, 0xff, 0x7fffffff, 0xffffffff, ~0ull, 1ull << 63};
        std::uint64_t v = kValues[below(std::size(kValues))];
        std::size_t n = std::min<std::size_t>(std::size_t{1} << below(4), s.size() - at);
        std::memcpy(s.data() + at, &v, n);
      }
    }
  }
}

/// What a reader accepted is sound: the verifier finds nothing but ops of different levels.
inline void expect_sound(const Graph& g) {
  for (const Diagnostic& d : verify(g, Level::Hir))
    check(d.message.find(" op, but the graph is at level ") != std::string::npos, d.text());
}

}  // namespace rlx::fuzz
