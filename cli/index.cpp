// `rlx index`: keeps the passages of files and folders with their vectors, for `rlx search --index`.
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
#include "rlx/formats/mapped_file.h"
#include "rlx/models/sentence_encoder.h"

namespace rlx::cli {
namespace {

struct IndexArgs {
  std::optional<std::string> model;
  std::string output, device = "cpu", vectors = "f16";
  std::vector<std::string> paths;
  FolderOptions folders;
  std::int64_t batch = 32, dimensions = 0;
  int threads = 0;
  bool memory = false, check_content = false;
};

// What an index says of itself, when it is brought up to date.
struct Known {
  std::vector<std::string> paths;
  TextIndexOptions options;
  std::string model;
  std::int64_t dimensions = 0;
};

Known settings_of(const IndexArgs& args) {
  Known out{args.paths, {}, args.model.value_or(""), args.dimensions};
  if (!args.paths.empty()) {
    if (!args.model)
      throw UsageError(ErrorCode::InvalidArgument, "--model is required", "the folder or the name of a model");
    out.options = args.folders.index_options(PassageKind::Chunks);
    out.options.vectors = args.vectors == "f16" ? DType::F16 : DType::I8;
  } else {
    if (!has_file(args.output))
      throw UsageError(ErrorCode::InvalidArgument, "no files or folders are given, and there is no index yet",
                       concat_text("rlx index --model DIR FOLDER -o ", args.output));
    const TextIndex old = TextIndex::open(args.output);
    out.paths = old.paths(), out.options = old.options(), out.dimensions = old.dimensions();
    if (!args.model) out.model = old.model();
  }
  out.options.check_content = args.check_content;
  return out;
}

// The parts that are not zero: "3 new, 1 changed".
std::string counts(std::initializer_list<std::pair<std::size_t, const char*>> parts) {
  std::string out;
  for (const auto& [count, what] : parts)
    if (count) out += concat_text(out.empty() ? "" : ", ", count, " ", what);
  return out.empty() ? out : concat_text(" (", out, ")");
}

void run(const IndexArgs& args) {
  const Known known = settings_of(args);
  SentenceEncoderOptions options;
  options.num_threads = args.threads;
  const NamedDevice device = device_called(args.device);
  options.device = device.id, options.device_options = device.options;
  options.max_batch = args.batch, options.dimensions = known.dimensions;
  SentenceEncoder encoder(model_path(known.model), options);
  std::optional<ProgressBar> bar;
  const TextIndexUpdate done =
      update_text_index(args.output, known.paths, encoder, known.options, [&](std::size_t embedded, std::size_t all) {
        if (!bar) bar.emplace("embedding", all);
        bar->update(embedded);
      });
  if (bar) bar->clear();
  report_left_out(done.left_out);
  if (!done.rebuilt.empty()) std::fprintf(stderr, "note: the index was made anew: %s\n", done.rebuilt.c_str());
  const TextIndex index = TextIndex::open(args.output);
  Output out("-");
  out.write(concat_text(args.output, done.written ? ": " : " is up to date: ", done.files, " files",
                        counts({{done.added, "new"}, {done.changed, "changed"}, {done.removed, "removed"}}), ", ",
                        done.passages, " passages", counts({{done.embedded, "embedded"}}), ", ", index.size_bytes(),
                        " bytes\n"));
  out.close();
  if (args.memory) report_memory(options.device.kind, encoder.weight_bytes());
}

}  // namespace

void register_index(CommandLine& line) {
  auto args = std::make_shared<IndexArgs>();
  const Command cmd =
      line.add_command("index", "Keep the passages of files and folders with their vectors, for rlx search --index");
  add_model_option(cmd, args->model, "; default: the index's");
  const Argument paths =
      cmd.add_option("paths", args->paths, "Text files, gzip too, and folders of them; default: those of the index")
          .type_name("PATH");
  cmd.add_option("-o,--output", args->output, "The index, which is updated if it exists").required().type_name("FILE");
  const Argument vectors = cmd.add_option("--vectors", args->vectors, "Element type of the vectors; int8 takes half")
                               .one_of({"f16", "int8"})
                               .show_default();
  cmd.add_flag("--check-content", args->check_content, "Read files again whose size and times are unchanged");
  cmd.add_option("--batch", args->batch, "Passages per batch").in_range(1, 4096).show_default();
  const Argument dimensions =
      cmd.add_option("--dimensions", args->dimensions, "Elements kept of each vector, for Matryoshka models; 0: all")
          .in_range(0, 1 << 20)
          .show_default();
  add_device_option(cmd, args->device);
  add_threads_option(cmd, args->threads);
  add_memory_flag(cmd, args->memory);
  for (const Argument& option : add_folder_options(cmd, args->folders, "chunks")) option.needs(paths);
  vectors.needs(paths), dimensions.needs(paths);
  cmd.footer(concat_text(
      "A second run reads the files that changed, and embeds the passages that are new. Without PATH the folders and\n"
      "options of the index are used again.\n\n",
      kExitStatus));
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
