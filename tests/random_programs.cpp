// Random programs by their seeds, on any device, against their exact results: what a campaign runs, and what runs one
// of its programs again.
//
//   random_programs [--device NAME] [--plugin FILE] [--first SEED] [--count N] [--seconds S] [--calls PERCENT]
//                   [--ops N] [--derive] [--kinds]
//
// --calls: so many of 100 ops are calls of any op or function, by its samples or with attributes drawn anew; the same
// seed makes another program at another share. --ops: from 1 to 2 N ops a program, 12 unless said; the fewer, the
// cheaper on devices that compile slowly. --derive: of every program the reverse derivative (against forward mode
// and its own exact result) and a batch, else of some. --kinds: in how many programs each op kind stands.
// Program k has seed SEED + k; every eighth has NaN, infinities and subnormal
// numbers among its values. A program that fails is printed, on the cpu cut down, and the campaign goes on; the last
// lines say how many were tried.
#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "rlx/device/plugin_backend.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/text.h"
#include "tests/support/random_checks.h"

namespace {

using namespace rlx;
using namespace rlx::test;

struct Campaign {
  std::string device = "cpu";
  std::uint64_t first = 1, count = 1000;
  double seconds = 0;
  int calls = 0, ops = ProgramOptions{}.ops;
  bool derive = false, kinds = false;
};

void kinds_of(const Graph& g, std::set<OpKind>& kinds) {
  for (const Node& n : g.nodes()) {
    kinds.insert(n.kind());
    for (const Subgraph& body : body_graphs(n.op)) kinds_of(*body, kinds);
  }
}

void print_kinds(const std::array<std::uint64_t, kNumOpKinds>& counts) {
  int reached = 0;
  std::string missing;
  for (const OpDef* def : all_op_defs()) {
    const std::uint64_t n = counts[static_cast<std::size_t>(def->kind)];
    reached += n > 0;
    if (n > 0)
      std::printf("  %-24s %8" PRIu64 "\n", std::string(def->name).c_str(), n);
    else
      missing += concat_text(missing.empty() ? "" : ", ", def->name);
  }
  std::printf("op kinds in some program: %d of %d; in none: %s\n", reached, kNumOpKinds, missing.c_str());
}

// A program that ends the process leaves its seed.
std::uint64_t current_seed = 0;

volatile std::sig_atomic_t stopped = 0;  // ends behind this program, with its counts

void on_fatal(int signal) {
  std::signal(signal, SIG_DFL);
  std::fprintf(stderr, "seed %" PRIu64 ": signal %d\n", current_seed, signal);
  std::raise(signal);
}

int run(const Campaign& c) {
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  const auto device = parse_device_id(c.device);
  if (!device) throw Error(ErrorCode::InvalidArgument, concat_text(c.device, " is no device"));
  const bool cpu = c.device == "cpu";
  const Session session(*device);
  const Subnormals subnormals = cpu || c.device == "directx"
                                    ? Subnormals::Kept
                                    : Subnormals::MayBeZero;  // directx: the adversarial test device's name
  std::uint64_t tried = 0, derived = 0, batched = 0;
  std::vector<std::uint64_t> failed;
  std::array<std::uint64_t, kNumOpKinds> counts{};
  for (std::uint64_t seed = c.first;
       seed < c.first + c.count && stopped == 0 && (c.seconds == 0 || seconds() < c.seconds); ++seed) {
    ProgramOptions options;
    options.calls = c.calls, options.ops = c.ops;
    options.specials = seed % 8 == 7;
    current_seed = seed;
    const RandomProgram p = random_program(seed, options);
    Looked looked;
    const std::string text =
        cpu ? failure_of(p, {}, c.derive, &looked) : failure_on(session, p, subnormals, c.derive, &looked);
    ++tried, derived += looked.derivatives, batched += looked.batches;
    std::set<OpKind> kinds;
    kinds_of(p.graph, kinds);
    for (OpKind kind : kinds) ++counts[static_cast<std::size_t>(kind)];
    if (!text.empty()) {
      failed.push_back(seed);
      std::string shown = print_text(p.graph);
      std::printf("seed %" PRIu64 ": %s\n", seed, text.c_str());
      if (cpu) {
        const std::string who = text.substr(0, text.find(':'));
        const RandomProgram small = smaller(p, who);
        shown = print_text(small.graph);
        std::printf("cut down: %s\n", failure_of(small, who, true).c_str());
      }
      std::printf("%s\n", shown.c_str());
    }
    if (tried % 250 == 0 || !text.empty())
      std::printf("seed %" PRIu64 ": %" PRIu64 " tried, %zu failed, %.0f s\n", seed, tried, failed.size(), seconds());
    std::fflush(stdout);
  }
  std::printf("%s: seeds %" PRIu64 " to %" PRIu64 ", --calls %d --ops %d%s: %" PRIu64 " programs, %" PRIu64
              " with derivatives, %" PRIu64 " batched, in %.0f s; %zu failed",
              c.device.c_str(), c.first, c.first + tried - 1, c.calls, c.ops, c.derive ? " --derive" : "", tried,
              derived, batched, seconds(), failed.size());
  for (std::uint64_t seed : failed) std::printf(" %" PRIu64, seed);
  std::printf("\n");
  if (c.kinds) print_kinds(counts);
  return failed.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Campaign c;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--derive") {
        c.derive = true;
      } else if (word == "--kinds") {
        c.kinds = true;
      } else if (i + 1 == argc) {
        std::fprintf(stderr, "%s: unknown, or needs a value; the head of tests/random_programs.cpp has the usage\n",
                     word.c_str());
        return 2;
      } else if (const std::string value = argv[++i]; word == "--device") {
        c.device = value;
      } else if (word == "--plugin") {
        load_plugin(value);
      } else if (word == "--first") {
        c.first = std::strtoull(value.c_str(), nullptr, 10);
      } else if (word == "--count") {
        c.count = std::strtoull(value.c_str(), nullptr, 10);
      } else if (word == "--seconds") {
        c.seconds = std::atof(value.c_str());
      } else if (word == "--calls") {
        c.calls = std::atoi(value.c_str());
      } else if (word == "--ops") {
        c.ops = std::max(1, std::atoi(value.c_str()));
      } else {
        std::fprintf(stderr, "%s: unknown; the head of tests/random_programs.cpp has the usage\n", word.c_str());
        return 2;
      }
    }
    for (const int signal : {SIGABRT, SIGFPE, SIGILL, SIGSEGV}) std::signal(signal, on_fatal);
    for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stopped = 1; });
    return run(c);
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 2;
  }
}
