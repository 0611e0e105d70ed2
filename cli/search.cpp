// `rlx search`: the passages of text files, folders or an index closest in meaning to a query.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/memory_report.h"
#include "cli/model_names.h"
#include "cli/searchable.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/models/passages.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::cli {
namespace {

struct SearchArgs {
  std::optional<std::string> model, index;
  std::string query, device = "cpu";
  std::vector<std::string> paths;
  FolderOptions folders;
  MatchFormat format;
  std::int64_t top = 5, batch = 32, dimensions = 0;
  int threads = 0;
  bool memory = false, paragraphs = false;
};

SentenceEncoder open_encoder(const SearchArgs& args, const std::string& model, std::int64_t dimensions) {
  SentenceEncoderOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch, options.dimensions = dimensions;
  return SentenceEncoder(model_path(model), options);
}

void report_memory_of(const SearchArgs& args, const SentenceEncoder& encoder) {
  if (args.memory) report_memory(device_called(args.device).id.kind, encoder.weight_bytes());
}

// A path of an index, from the current folder where the file lies in it.
std::string nearby_name(const std::string& path) {
  std::error_code ignored;
  const std::string here = std::filesystem::current_path(ignored).string() + "/";
  return path.starts_with(here) ? path.substr(here.size()) : path;
}

void search_index(const SearchArgs& args) {
  const TextIndex index = TextIndex::open(*args.index);
  SentenceEncoder encoder = open_encoder(args, args.model.value_or(index.model()), index.dimensions());
  std::vector<ShownMatch> shown;
  std::size_t stale = 0;
  for (IndexMatch& m : index.search(encoder, args.query, static_cast<std::size_t>(args.top))) {
    if (!index.is_current(m.places.front().file)) ++stale;
    for (PassagePlace& place : m.places) place.file = nearby_name(place.file);
    shown.push_back({m.score, std::move(m.text), std::move(m.places)});
  }
  write_matches(args.format, index.options().passages != PassageKind::Lines, shown);
  report_memory_of(args, encoder);
  if (stale)
    std::fprintf(stderr, "note: %zu of these passages lie in files that changed since; update with `rlx index -o %s`\n",
                 stale, args.index->c_str());
}

struct Unique {
  std::string text;
  std::vector<PassagePlace> places;
};

// The passages of all texts, each once.
std::vector<Unique> split_texts(const std::vector<NamedText>& texts, PassageKind kind, const SentenceEncoder& encoder,
                                ChunkOptions chunks) {
  chunks.max_tokens = std::min(chunks.max_tokens, encoder.max_text_tokens(encoder.passage_prompt()));
  chunks.overlap = std::min(chunks.overlap, chunks.max_tokens / 2);
  std::vector<Unique> out;
  std::unordered_map<std::string, std::size_t> known;
  for (const NamedText& text : texts)
    for (Passage& p : split_text(text.text, kind, encoder.tokenizer(), chunks)) {
      const auto [at, added] = known.emplace(std::move(p.text), out.size());
      if (added) out.push_back({at->first, {}});
      out[at->second].places.push_back({text.name, p.line});
    }
  if (out.empty()) throw Error(ErrorCode::InvalidArgument, "the files hold no text to search");
  return out;
}

void search_files(const SearchArgs& args) {
  const bool folder = std::any_of(args.paths.begin(), args.paths.end(), [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  });
  const TextIndexOptions how = args.folders.index_options(args.paragraphs ? PassageKind::Paragraphs
                                                          : folder        ? PassageKind::Chunks
                                                                          : PassageKind::Lines);
  const std::vector<NamedText> texts = read_texts_of(args.paths, args.folders);
  SentenceEncoder encoder = open_encoder(args, *args.model, args.dimensions);
  const Tensor query = encoder.embed(
      std::span(&args.query, 1), nullptr, nullptr, [](std::size_t) { return "the query"; }, encoder.query_prompt());
  const std::vector<Unique> passages = split_texts(texts, how.passages, encoder, how.chunks);

  ProgressBar bar("reading", passages.size());
  std::vector<Match> best;
  std::size_t num_cut = 0;
  const std::size_t block = static_cast<std::size_t>(args.batch) * 64, top = static_cast<std::size_t>(args.top);
  for (std::size_t first = 0; first < passages.size(); first += block) {
    std::vector<std::string> part;
    for (std::size_t i = first; i < std::min(first + block, passages.size()); ++i) part.push_back(passages[i].text);
    std::vector<TruncationNotice> cut;
    const Tensor vectors = encoder.embed(
        part, &cut, [&](std::size_t done) { bar.update(first + done); },
        [&](std::size_t i) {
          const PassagePlace& place = passages[first + i].places.front();
          return concat_text(place.file, ":", place.line);
        },
        encoder.passage_prompt());
    num_cut += cut.size();
    for (const Match& m : best_matches(query, vectors, top)) best.push_back({m.index + first, m.score});
    keep_best(best, top);
  }
  bar.clear();

  std::vector<ShownMatch> shown;
  for (const Match& m : best) shown.push_back({m.score, passages[m.index].text, passages[m.index].places});
  write_matches(args.format, how.passages != PassageKind::Lines, shown);
  report_memory_of(args, encoder);
  // A single word may have more tokens than a short model reads.
  if (num_cut)
    std::fprintf(stderr, "note: %zu passages have more than %lld tokens and were truncated\n", num_cut,
                 static_cast<long long>(encoder.max_sequence()));
}

void run(const SearchArgs& args) {
  if (args.index) return search_index(args);
  if (args.paths.empty())
    throw UsageError(ErrorCode::InvalidArgument, "nothing to search is given",
                     "name files or folders, or an index that `rlx index` made with --index");
  if (!args.model) throw UsageError(ErrorCode::InvalidArgument, "--model is required", "only an index names its model");
  search_files(args);
}

}  // namespace

void register_search(CommandLine& line) {
  auto args = std::make_shared<SearchArgs>();
  const Command cmd =
      line.add_command("search", "Find the passages of files, folders or an index closest in meaning to a query");
  add_model_option(cmd, args->model, "; default: the index's");
  cmd.add_option("query", args->query, "What to look for").required();
  const Argument paths =
      cmd.add_option("paths", args->paths,
                     "Text files, gzip too ('-': standard input), and folders of them; others are left out with a note")
          .type_name("PATH");
  const Argument index =
      cmd.add_option("-i,--index", args->index, "Search this index (`rlx index`) instead").type_name("FILE");
  index.excludes(paths);
  cmd.add_option("--top", args->top, "Matches to print").in_range(1, 100000).show_default();
  add_match_format(cmd, args->format);
  cmd.add_option("--batch", args->batch, "Passages per batch").in_range(1, 4096).show_default();
  cmd.add_option("--dimensions", args->dimensions, "Elements compared of each vector, for Matryoshka models; 0: all")
      .in_range(0, 1 << 20)
      .show_default()
      .excludes(index);
  add_device_option(cmd, args->device);
  add_threads_option(cmd, args->threads);
  add_memory_flag(cmd, args->memory);
  const std::vector<Argument> folder =
      add_folder_options(cmd, args->folders, "lines, and chunks where a folder is searched");
  for (const Argument& option : folder) option.excludes(index);
  cmd.add_flag("--paragraphs", args->paragraphs, "The same as --passages paragraphs").excludes(index);
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
