// `rlx convert`: models between Hugging Face folders and GGUF files, quantised on the way.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/models/convert/model_convert.h"

namespace rlx::cli {
namespace {

struct ConvertArgs {
  std::string source, target, type, head_type, importance, pre, split_max_size;
  int threads = 0;
  bool quiet = false;
};

std::optional<GgufType> type_named(const std::string& name, const char* option) {
  if (name.empty()) return std::nullopt;
  if (const auto type = parse_gguf_type(name)) return type;
  std::vector<std::string> known;
  for (const GgufTypeInfo& t : gguf_types()) known.emplace_back(t.name);
  throw UsageError(ErrorCode::InvalidArgument, concat_text(option, ": there is no type '", name, "'"),
                   did_you_mean(name, known, "common types are F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K and Q4_0"));
}

// "500M" or "2G", of 10^6 and 10^9 bytes as in llama.cpp's tools; "" is 0.
std::size_t size_named(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t v = 0, unit = text.back() == 'M' ? 1000000 : text.back() == 'G' ? 1000000000 : 0;
  const char* end = text.data() + text.size() - 1;
  const auto [at, failed] = std::from_chars(text.data(), end, v);
  std::size_t bytes = 0;
  if (unit == 0 || failed != std::errc() || at != end || v == 0 || __builtin_mul_overflow(v, unit, &bytes))
    throw UsageError(ErrorCode::InvalidArgument, concat_text("--split-max-size: '", text, "' is not a size"),
                     "write it as 500M or 2G");
  return bytes;
}

bool ends_in_gguf(const std::string& path) { return path.size() > 5 && path.substr(path.size() - 5) == ".gguf"; }

void convert(const ConvertArgs& args) {
  ConvertOptions options;
  options.type = type_named(args.type, "--type");
  options.head_type = type_named(args.head_type, "--head-type");
  options.importance = args.importance;
  options.pre_tokenizer = args.pre;
  options.threads = args.threads;
  options.split_max_bytes = size_named(args.split_max_size);
  std::optional<ProgressBar> bar;
  std::size_t shown = 0;
  options.progress = [&](std::size_t done, std::size_t total) {
    const std::size_t mib = done >> 20;
    if (args.quiet || (mib == shown && done < total)) return;
    shown = mib;
    if (!bar) bar.emplace("converting, MiB", total >> 20);
    bar->update(mib);
  };
  options.note = [&](const std::string& text) {
    if (args.quiet) return;
    if (bar) bar->clear();
    std::fprintf(stderr, "note: %s\n", text.c_str());
  };
  const std::string source = model_path(args.source);
  const bool from_file = !std::filesystem::is_directory(source);
  if (ends_in_gguf(args.target)) {
    convert_to_gguf(source, args.target, options);
  } else if (from_file) {
    convert_to_folder(source, args.target, options);
  } else {
    throw UsageError(
        ErrorCode::InvalidArgument,
        concat_text("a folder can be converted only to a GGUF file, but '", args.target, "' does not end in .gguf"),
        "give a target such as model.gguf");
  }
  if (bar) bar->clear();
}

}  // namespace

void register_convert(CommandLine& line) {
  const Command command =
      line.add_command("convert", "Convert a model: Hugging Face folder <-> GGUF file, or a GGUF file to other types");
  auto args = std::make_shared<ConvertArgs>();
  command
      .add_option(
          "source", args->source,
          "A folder with config.json and safetensors, a GGUF file (any part of a split one), or a name on a hub "
          "(rlx pull)")
      .required();
  command.add_option("target", args->target, "A file *.gguf, or a folder for config.json and model.safetensors")
      .required();
  command.add_option("--type", args->type,
                     "Type of the matrices: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K, ... (default: unchanged)");
  command.add_option("--head-type", args->head_type, "Type of the output matrix (default: at least Q6_K)");
  command.add_option(
      "--importance", args->importance,
      "Importance matrix, a weight for each column of each matrix: imatrix GGUF of llama.cpp, or safetensors");
  command.add_option("--pre", args->pre,
                     "Name of the pre-tokenizer in llama.cpp, if the patterns of tokenizer.json are not known");
  command.add_option(
      "--split-max-size", args->split_max_size,
      "Maximum tensor bytes in a file, for example 500M or 2G; larger models become several files (default: one file)");
  add_threads_option(command, args->threads);
  command.add_flag("--quiet", args->quiet, "Print no progress and no notes");
  command.footer(std::string("A conversion that is interrupted keeps what it has written beside the target; the same "
                             "command resumes it.\n") +
                 kExitStatus);
  command.callback([args] { convert(*args); });
}

}  // namespace rlx::cli
