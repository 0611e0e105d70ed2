// `rlx search`: the lines or paragraphs of text files closest in meaning to a query.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/graph_file.h"
#include "cli/memory_report.h"
#include "cli/terminal.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/formats/json.h"
#include "rlx/ir/utf8.h"
#include "rlx/models/passages.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::cli {
namespace {

struct SearchArgs {
  std::string model, query, format = "text", device = "cpu";
  std::vector<std::string> files;
  std::int64_t top = 5, batch = 32;
  int threads = 0;
  bool paragraphs = false, memory = false;
};

struct Found {
  std::size_t file;
  Passage passage;
};

// The text of a file. Errors: also BadFile for what is no text.
std::string read_searchable(const std::string& path) {
  const std::string text = read_text(path);
  constexpr std::pair<std::string_view, std::string_view> kPacked[] = {{"\xfd"
                                                                        "7zXZ",
                                                                        "xz"},
                                                                       {"\x28\xb5\x2f\xfd", "zstd"},
                                                                       {"BZh", "bzip2"},
                                                                       {"PK\x03\x04", "zip"}};
  for (const auto& [start, name] : kPacked)
    if (text.starts_with(start))
      throw Error(ErrorCode::BadFile, concat_text(path, ": compressed with ", name),
                  "of compressed files, gzip is read");
  if (text.find('\0') != std::string::npos) throw Error(ErrorCode::BadFile, concat_text(path, ": a binary file"));
  if (auto bad = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw Error(ErrorCode::BadFile, concat_text(path, ":", line, ": not valid UTF-8"), "convert it with iconv");
  }
  return text;
}

// What cannot be read as text is left out with a note, so that `rlx search QUERY *` works; an error when nothing is
// left.
std::vector<Found> read_passages(const SearchArgs& args) {
  std::vector<Found> out;
  std::vector<Diagnostic> left_out;
  for (std::size_t f = 0; f < args.files.size(); ++f) {
    std::string text;
    try {
      text = read_searchable(args.files[f]);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::BadFile) throw;
      left_out.push_back(e.diagnostic());
      continue;
    }
    for (Passage& p : args.paragraphs ? split_into_paragraphs(text) : split_into_lines(text))
      out.push_back({f, std::move(p)});
  }
  if (out.empty() && !left_out.empty()) throw Error(left_out.front());
  if (out.empty()) throw Error(ErrorCode::InvalidArgument, "the files hold no text to search");
  for (const Diagnostic& d : left_out) std::fprintf(stderr, "note: left out: %s\n", d.message.c_str());
  return out;
}

void run(const SearchArgs& args) {
  const std::vector<Found> found = read_passages(args);
  SentenceEncoderOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch;
  SentenceEncoder encoder(args.model, options);
  const Tensor query =
      encoder.embed(std::span(&args.query, 1), nullptr, nullptr, [](std::size_t) { return "the query"; });

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
        [&](std::size_t i) {
          const Found& f = found[first + i];
          return concat_text(args.files[f.file], ":", f.passage.line);
        });
    num_cut += cut.size();
    for (const Match& m : best_matches(query, vectors, top)) best.push_back({m.index + first, m.score});
    std::stable_sort(best.begin(), best.end(), [](const Match& a, const Match& b) { return a.score > b.score; });
    if (best.size() > top) best.resize(top);
  }
  bar.clear();

  Output out("-");
  if (args.format == "json") {
    JsonWriter json;
    json.begin_array();
    for (const Match& m : best) {
      const Found& f = found[m.index];
      json.begin_object()
          .member("score", m.score)
          .member("file", args.files[f.file])
          .member("line", static_cast<std::int64_t>(f.passage.line));
      json.member("text", f.passage.text).end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    const std::size_t columns = terminal_columns(120);
    for (const Match& m : best) {
      const Found& f = found[m.index];
      char score[16];
      std::snprintf(score, sizeof score, "%7.4f", m.score);
      const std::string place = concat_text(score, "  ", args.files[f.file], ":", f.passage.line, "  ");
      const std::size_t room = args.paragraphs ? 400 : columns > place.size() + 40 ? columns - place.size() : 40;
      out.write(concat_text(place, one_line(f.passage.text, room), "\n"));
    }
  }
  out.close();
  if (args.memory) report_memory(options.device.kind, encoder.weight_bytes());
  if (num_cut)
    std::fprintf(stderr, "note: %zu passages have more than %lld tokens, the rest of them was not read\n", num_cut,
                 static_cast<long long>(encoder.max_sequence()));
}

}  // namespace

void register_search(CLI::App& app) {
  auto args = std::make_shared<SearchArgs>();
  CLI::App* cmd = app.add_subcommand("search", "Find the passages of text files closest in meaning to a query");
  cmd->add_option("--model", args->model, "Model folder: config.json, tokenizer.json or vocab.txt, model.safetensors")
      ->required()
      ->type_name("DIR");
  cmd->add_option("query", args->query, "What to look for")->required();
  cmd->add_option("files", args->files, "Text files, gzip too ('-': standard input); others are left out with a note")
      ->required()
      ->type_name("FILE");
  cmd->add_option("--top", args->top, "Matches to print")->check(CLI::Range(1, 100000))->capture_default_str();
  cmd->add_flag("--paragraphs", args->paragraphs, "Compare whole paragraphs (parted by blank lines) instead of lines");
  cmd->add_option("--format", args->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  cmd->add_option("--batch", args->batch, "Passages that run together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  cmd->add_option("-d,--device", args->device, kDeviceUsage)->capture_default_str();
  cmd->add_option("--threads", args->threads, "Threads; 0: as many as the machine grants")
      ->check(CLI::Range(0, kMaxThreads))
      ->capture_default_str();
  cmd->add_flag("--memory", args->memory, kMemoryFlag);
  cmd->callback([args] { run(*args); });
}

}  // namespace rlx::cli
