// `rlx search`: the lines or paragraphs of text files closest in meaning to a query.
#include <algorithm>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/memory_report.h"
#include "cli/searchable.h"
#include "cli/terminal.h"
#include "rlx/models/passages.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::cli {
namespace {

struct SearchArgs {
  std::string model, query, device = "cpu";
  SearchableOptions texts;
  MatchFormat format;
  std::int64_t top = 5, batch = 32, dimensions = 0;
  int threads = 0;
  bool memory = false;
};

void run(const SearchArgs& args) {
  const std::vector<Found> found = read_passages(args.texts);
  SentenceEncoderOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch, options.dimensions = args.dimensions;
  SentenceEncoder encoder(args.model, options);
  const Tensor query = encoder.embed(
      std::span(&args.query, 1), nullptr, nullptr, [](std::size_t) { return "the query"; }, encoder.query_prompt());

  ProgressBar bar("reading", found.size());
  std::vector<Match> best;
  std::size_t num_cut = 0;
  const std::size_t block = static_cast<std::size_t>(args.batch) * 64, top = static_cast<std::size_t>(args.top);
  for (std::size_t first = 0; first < found.size(); first += block) {
    std::vector<std::string> texts;
    for (std::size_t i = first; i < std::min(first + block, found.size()); ++i) texts.push_back(found[i].passage.text);
    std::vector<TruncationNotice> cut;
    const Tensor vectors = encoder.embed(
        texts, &cut, [&](std::size_t done) { bar.update(first + done); },
        [&](std::size_t i) { return place_of(args.texts, found[first + i]); }, encoder.passage_prompt());
    num_cut += cut.size();
    for (const Match& m : best_matches(query, vectors, top)) best.push_back({m.index + first, m.score});
    keep_best(best, top);
  }
  bar.clear();

  write_matches(args.texts, args.format, found, best);
  if (args.memory) report_memory(options.device.kind, encoder.weight_bytes());
  if (num_cut)
    std::fprintf(stderr, "note: %zu passages have more than %lld tokens and were truncated\n", num_cut,
                 static_cast<long long>(encoder.max_sequence()));
}

}  // namespace

void register_search(CommandLine& line) {
  auto args = std::make_shared<SearchArgs>();
  const Command cmd = line.add_command("search", "Find the passages of text files closest in meaning to a query");
  cmd.add_option("--model", args->model, "Model folder: config.json, tokenizer.json or vocab.txt, model.safetensors")
      .required()
      .type_name("DIR");
  cmd.add_option("query", args->query, "What to look for").required();
  add_searchable_options(cmd, args->texts);
  cmd.add_option("--top", args->top, "Matches to print").in_range(1, 100000).show_default();
  add_match_format(cmd, args->format);
  cmd.add_option("--batch", args->batch, "Passages per batch").in_range(1, 4096).show_default();
  cmd.add_option("--dimensions", args->dimensions, "Elements compared of each vector, for Matryoshka models; 0: all")
      .in_range(0, 1 << 20)
      .show_default();
  add_device_option(cmd, args->device);
  add_threads_option(cmd, args->threads);
  add_memory_flag(cmd, args->memory);
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
