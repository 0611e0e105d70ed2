// `rlx rerank`: the lines or paragraphs of text files, ranked by how well they answer a query, by a cross-encoder.
#include <algorithm>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/memory_report.h"
#include "cli/model_names.h"
#include "cli/searchable.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/models/reranker.h"

namespace rlx::cli {
namespace {

struct RerankArgs {
  std::string query, device = "cpu";
  std::optional<std::string> model, instruction;
  SearchableOptions texts;
  MatchFormat format;
  std::int64_t batch = 32, max_tokens = 0, top = 0;
  int threads = 0;
  bool raw = false, memory = false;
};

// Until the next release, the first file is the model where --model is absent.
void read_old_form(RerankArgs& args) {
  if (args.model) return;
  if (args.texts.files.size() < 2)
    throw UsageError(ErrorCode::InvalidArgument, "--model is required",
                     "`rlx rerank --model DIR --query TEXT FILE...`");
  std::fprintf(stderr, "rlx: the model of rerank is now --model; the old form goes with the next release\n");
  args.model = args.texts.files.front();
  args.texts.files.erase(args.texts.files.begin());
}

void run(const RerankArgs& args) {
  const std::vector<Found> found = read_passages(args.texts);
  RerankerOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch, options.max_sequence = args.max_tokens;
  options.instruction = args.instruction;
  if (args.raw) options.activation = ScoreActivation::Identity;
  Reranker reranker(model_path(*args.model), options);
  if (reranker.labels() != 1)
    throw Error(
        ErrorCode::Unsupported,
        concat_text(*args.model, " gives ", reranker.labels(), " scores for each passage, but a ranking needs one"),
        "this model is a classifier, not a reranker");
  std::vector<std::string> passages;
  for (const Found& f : found) passages.push_back(f.passage.text);
  ProgressBar bar("reading", found.size());
  std::vector<TruncationNotice> cut;
  const Tensor scores = reranker.score(
      args.query, passages, &cut, [&](std::size_t done) { bar.update(done); },
      [&](std::size_t i) { return place_of(args.texts, found[i]); });
  bar.clear();
  std::vector<Match> best;
  for (std::size_t i = 0; i < found.size(); ++i) best.push_back({i, scores.at(static_cast<std::int64_t>(i))});
  keep_best(best, args.top ? static_cast<std::size_t>(args.top) : best.size());
  write_matches(args.format, args.texts.paragraphs, shown_matches(args.texts, found, best));
  if (args.memory) report_memory(options.device.kind, reranker.weight_bytes());
  if (!cut.empty())
    std::fprintf(stderr, "note: %zu passages have more than %lld tokens with the query and were truncated\n",
                 cut.size(), static_cast<long long>(reranker.max_sequence()));
}

}  // namespace

void register_rerank(CommandLine& line) {
  auto args = std::make_shared<RerankArgs>();
  const Command cmd = line.add_command("rerank", "Order passages of text files by how well they answer a query");
  add_model_option(cmd, args->model, "; a cross-encoder, required");
  cmd.add_option("-q,--query", args->query, "The query that passages are ranked for").required().type_name("TEXT");
  cmd.add_option("--instruction", args->instruction, "The task, for Qwen3 rerankers: which passages are relevant")
      .type_name("TEXT");
  add_searchable_options(cmd, args->texts);
  cmd.add_option("--top", args->top, "Passages to print; 0: all").in_range(0, 100000).show_default();
  add_match_format(cmd, args->format);
  cmd.add_flag("--raw", args->raw, "Print the raw scores, without the activation");
  cmd.add_option("--max-tokens", args->max_tokens, "Tokens kept of a query and a passage; 0: the model's limit")
      .in_range(0, 1 << 30)
      .show_default();
  cmd.add_option("--batch", args->batch, "Passages per batch").in_range(1, 4096).show_default();
  add_device_option(cmd, args->device);
  add_threads_option(cmd, args->threads);
  add_memory_flag(cmd, args->memory);
  cmd.callback([args] {
    read_old_form(*args);
    run(*args);
  });
}

}  // namespace rlx::cli
