// `rlx embed`: sentence embeddings of lines, as JSON, npy or text, or the cosines of all pairs.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/memory_report.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/json.h"
#include "rlx/formats/npy.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::cli {
namespace {

struct EmbedArgs {
  std::string model, format, output, device = "cpu", prompt, prompt_name;
  std::vector<std::string> texts, files;
  std::int64_t batch = 32, max_tokens = 0, dimensions = 0;
  int threads = 0;
  bool pairs = false, skip_empty = false, zero_empty = false, memory = false;
};

// The texts, and the source of each.
class Texts {
 public:
  struct Source {
    std::string prefix;  // "lines.txt:", "--text "
    std::size_t first;   // index of its first text
  };
  std::vector<std::string> all;

  void add(std::string prefix, std::vector<std::string> texts) {
    sources_.push_back({std::move(prefix), all.size()});
    all.insert(all.end(), std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end()));
  }
  void add_file(const std::string& path) {
    add(path == "-" ? "standard input:" : path + ":", split_lines(read_text(path)));
  }
  /// Removes the texts with the sorted indices `gone`; the others keep their names.
  void remove(const std::vector<std::size_t>& gone) {
    std::size_t to = 0, next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (next < gone.size() && gone[next] == i) {
        ++next;
        continue;
      }
      if (to != i) all[to] = std::move(all[i]);
      place_.push_back(i);
      ++to;
    }
    all.resize(to);
  }
  /// The file and line of a text, or which --text it is.
  std::string name(std::size_t text) const {
    const std::size_t i = place_.empty() ? text : place_[text];
    auto after = std::upper_bound(sources_.begin(), sources_.end(), i,
                                  [](std::size_t index, const Source& s) { return index < s.first; });
    const Source& source = *std::prev(after);
    return concat_text(source.prefix, i - source.first + 1);
  }

 private:
  std::vector<Source> sources_;
  std::vector<std::size_t> place_;  // the index of each text before `remove`; empty: none was removed
};

// The texts without a token, which --skip-empty and --zero-empty allow. Prints a note about them.
std::vector<std::size_t> find_empty(const EmbedArgs& args, const Texts& texts, const SentenceEncoder& encoder) {
  std::vector<std::size_t> empty;
  for (std::size_t i = 0; i < texts.all.size(); ++i)
    if (!encoder.has_tokens(texts.all[i])) empty.push_back(i);
  if (!empty.empty())
    std::fprintf(stderr, "note: %zu empty text%s %s, the first is %s\n", empty.size(), empty.size() == 1 ? "" : "s",
                 args.skip_empty ? "left out" : "with a vector of zeros", texts.name(empty[0]).c_str());
  return empty;
}

void require_texts(const EmbedArgs& args, std::size_t count) {
  if (count == 0)
    throw Error(ErrorCode::InvalidArgument, "there is no text to embed",
                "give --text TEXT, --file LINES.txt, or lines on the standard input");
  if (args.pairs && count == 1)
    throw UsageError(ErrorCode::InvalidArgument, "--pairs compares texts, but only one is given", "give at least two");
}

Texts read_texts(const EmbedArgs& args) {
  Texts texts;
  if (!args.texts.empty()) texts.add("--text ", args.texts);
  for (const std::string& path : args.files) texts.add_file(path);
  if (args.texts.empty() && args.files.empty()) {
    if (isatty(STDIN_FILENO)) std::fputs("reading texts from the terminal, one per line; Ctrl-D ends\n", stderr);
    texts.add_file("-");
  }
  // All texts are checked before any output is written, so that a bad text in a long input does not leave a partial
  // result.
  for (std::size_t i = 0; i < texts.all.size(); ++i) {
    const std::string& text = texts.all[i];
    if (auto bad = find_invalid_utf8(text))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text(texts.name(i), ": invalid UTF-8 at byte ", *bad, " of ", text.size()),
                  "convert the text to UTF-8, for example with iconv");
    if (!args.skip_empty && !args.zero_empty && text.find_first_not_of(" \t\r\v\f\n") == std::string::npos)
      throw Error(ErrorCode::InvalidArgument, concat_text(texts.name(i), ": the text is empty"),
                  "--skip-empty leaves such texts out, --zero-empty gives them a vector of zeros");
  }
  require_texts(args, texts.all.size());
  return texts;
}

void append_number(std::string& out, float v) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
}

// Writes the embeddings of one block after the other.
class VectorWriter {
 public:
  VectorWriter(Output& out, const std::string& format, std::size_t rows, std::int64_t columns)
      : out_(out), format_(format), columns_(columns) {
    if (format_ == "npy")
      out_.write(npy_header(DType::F32, std::vector<std::int64_t>{static_cast<std::int64_t>(rows), columns}));
    if (format_ == "json") json_.begin_array();
  }
  void write(const Tensor& vectors) {
    const std::span<const float> v = vectors.values<float>();
    if (format_ == "npy") {
      out_.write({reinterpret_cast<const char*>(v.data()), v.size_bytes()});
      return;
    }
    const auto width = static_cast<std::size_t>(columns_);
    for (std::size_t first = 0; first < v.size(); first += width) {
      if (format_ == "json") {
        json_.begin_array();
        for (float x : v.subspan(first, width)) json_.value(x);
        json_.end_array();
        out_.write(json_.flush());
      } else {
        std::string line;
        for (float x : v.subspan(first, width)) {
          if (!line.empty()) line += ' ';
          append_number(line, x);
        }
        out_.write(line + "\n");
      }
    }
  }
  void finish() {
    if (format_ == "json") out_.write(json_.end_array().take() + "\n");
  }

 private:
  Output& out_;
  const std::string& format_;
  std::int64_t columns_;
  JsonWriter json_;
};

void write_pairs(Output& out, const std::string& format, const std::vector<std::string>& texts, const Tensor& vectors) {
  const std::size_t n = texts.size(), width = static_cast<std::size_t>(vectors.dim(1));
  const std::span<const float> v = vectors.values<float>();
  auto cosine = [&](std::size_t a, std::size_t b) {
    return cosine_similarity(v.subspan(a * width, width), v.subspan(b * width, width));
  };
  if (format == "npy") {
    Tensor all = Tensor::zeros(Shape({n, n}, DType::F32));
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) all.set(static_cast<std::int64_t>(a * n + b), cosine(a, b));
    out.write(npy_bytes(all));
    return;
  }
  JsonWriter json;
  json.begin_array();
  const std::size_t room = terminal_columns(120);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      if (format == "json") {
        json.begin_object()
            .member("a", static_cast<std::int64_t>(a + 1))
            .member("b", static_cast<std::int64_t>(b + 1))
            .member("cosine", cosine(a, b))
            .end_object();
        out.write(json.flush());
      } else {
        char score[16];
        std::snprintf(score, sizeof score, "%7.4f", cosine(a, b));
        const std::size_t half = (room > 40 ? room : 40) / 2 - 8;
        out.write(concat_text(score, "  ", one_line(texts[a], half), "  |  ", one_line(texts[b], half), "\n"));
      }
    }
  }
  if (format == "json") out.write(json.end_array().take() + "\n");
}

void run(const EmbedArgs& args) {
  const std::string format = !args.format.empty() ? args.format : args.pairs ? "text" : "json";
  Output out(args.output);
  if (format == "npy" && out.is_terminal())
    throw UsageError(ErrorCode::InvalidArgument, "npy is binary and the output is a terminal",
                     "redirect it, or give --output FILE");
  Texts input = read_texts(args);
  SentenceEncoderOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch;
  options.max_sequence = args.max_tokens;
  options.dimensions = args.dimensions;
  options.zero_empty = args.zero_empty;
  SentenceEncoder encoder(model_path(args.model), options);
  const std::string prompt = args.prompt.empty() ? encoder.prompt(args.prompt_name) : args.prompt;
  if (args.skip_empty || args.zero_empty) {
    const std::vector<std::size_t> empty = find_empty(args, input, encoder);
    if (args.skip_empty) input.remove(empty);
  }
  const std::vector<std::string>& texts = input.all;
  require_texts(args, texts.size());

  ProgressBar bar("embedding", texts.size());
  std::vector<TruncationNotice> notices;
  // The input is processed in blocks, which bounds memory and gives results early. Within a block, texts of similar
  // length are batched.
  const std::size_t block = args.pairs ? texts.size() : static_cast<std::size_t>(args.batch) * 64;
  std::unique_ptr<VectorWriter> writer;
  if (!args.pairs) writer = std::make_unique<VectorWriter>(out, format, texts.size(), encoder.hidden_size());
  for (std::size_t first = 0; first < texts.size(); first += block) {
    const std::size_t count = std::min(block, texts.size() - first);
    std::vector<TruncationNotice> cut;
    const Tensor vectors = encoder.embed(
        std::span(texts).subspan(first, count), &cut, [&](std::size_t done) { bar.update(first + done); },
        [&](std::size_t i) { return input.name(first + i); }, prompt);
    for (TruncationNotice& n : cut) {
      n.text_index += first;
      notices.push_back(n);
    }
    if (writer)
      writer->write(vectors);
    else
      write_pairs(out, format, texts, vectors);
  }
  bar.clear();
  if (writer) writer->finish();
  out.close();
  report_truncation(notices, [&](std::size_t i) { return input.name(i); });
  if (args.memory) report_memory(options.device.kind, encoder.weight_bytes());
}

}  // namespace

void register_embed(CommandLine& line) {
  auto args = std::make_shared<EmbedArgs>();
  const Command cmd = line.add_command("embed", "Embed texts with a sentence-embedding model");
  add_model_option(cmd, args->model).required();
  cmd.add_option("--text", args->texts, "A text to embed; may be given several times")
      .type_name("TEXT")
      .one_value_each();
  cmd.add_option("--file", args->files, "A file of texts, one per line, gzip too ('-': standard input)")
      .type_name("FILE")
      .one_value_each();
  cmd.add_option("--format", args->format,
                 "Format of the vectors; default json (an array of number arrays), with --pairs text")
      .one_of({"json", "npy", "text"});
  cmd.add_option("-o,--output", args->output, "Write here instead of the standard output").type_name("FILE");
  cmd.add_option("--batch", args->batch, "Texts per batch").in_range(1, 4096).show_default();
  add_device_option(cmd, args->device);
  add_threads_option(cmd, args->threads);
  cmd.add_option("--max-tokens", args->max_tokens, "Tokens kept per text; 0: the model's limit")
      .in_range(0, 1 << 30)
      .show_default();
  cmd.add_option("--dimensions", args->dimensions, "Elements kept of each vector, for Matryoshka models; 0: all")
      .in_range(0, 1 << 20)
      .show_default();
  const Argument named = cmd.add_option("--prompt-name", args->prompt_name,
                                        "The model's own prompt to put before texts (query, document, ..)")
                             .type_name("NAME");
  cmd.add_option("--prompt", args->prompt, "Text to put before every text").type_name("TEXT").excludes(named);
  const Argument skip = cmd.add_flag("--skip-empty", args->skip_empty, "Leave out texts that have no tokens");
  cmd.add_flag("--zero-empty", args->zero_empty, "Give texts that have no tokens a vector of zeros").excludes(skip);
  add_memory_flag(cmd, args->memory);
  cmd.add_flag("--pairs", args->pairs, "Print the cosine similarity of every pair of texts instead of vectors");
  cmd.footer(
      concat_text("Without --text and --file, texts are read from the standard input, one per line. An empty one is an "
                  "error unless\n"
                  "--skip-empty or --zero-empty is given.\n\n",
                  kExitStatus));
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
