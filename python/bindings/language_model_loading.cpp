// Loads language models from the keywords of rlx.models.load.
#include "python/bindings/language_model.h"
#include "python/bindings/runtime.h"
#include "python/bindings/text.h"
#include "rlx/formats/packed_weight_files.h"

namespace rlx::python {
namespace {

constexpr const char* kUsualAdapter = "adapter";

bool is_path(nb::handle h) {
  return PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || nb::hasattr(h, "__fspath__");
}
AdapterPart adapter_part(nb::handle h, double scale = 1) {
  if (!is_path(h))
    raise(ErrorCode::DTypeMismatch,
          concat_text("load: an adapter must be a folder or (folder, scale), got ", described(h)));
  return {existing(nb::cast<std::filesystem::path>(h)), scale};
}
// A folder, (folder, scale), or a list of these.
AdapterOptions adapter_of(std::string name, nb::handle h) {
  AdapterOptions out{std::move(name)};
  const auto scaled = [](nb::handle pair) {
    return nb::isinstance<nb::tuple>(pair) && nb::len(pair) == 2 && PyNumber_Check(nb::object(pair[1]).ptr());
  };
  const auto add = [&](nb::handle part) {
    out.parts.push_back(
        scaled(part)
            ? adapter_part(nb::object(part[0]), cast_as<double>(nb::object(part[1]), "load: the scale of an adapter"))
            : adapter_part(part));
  };
  if (!is_path(h) && !scaled(h) && PySequence_Check(h.ptr()))
    for (nb::handle part : nb::borrow<nb::sequence>(h)) add(part);
  else
    add(h);
  return out;
}
// A dict: adapters by name, which answers select. Else one adapter without a name, for all answers.
std::vector<AdapterOptions> adapters_from(nb::handle h) {
  if (h.is_none()) return {};
  if (!nb::isinstance<nb::dict>(h)) return {adapter_of(kUsualAdapter, h)};
  std::vector<AdapterOptions> out;
  for (const auto [name, parts] : nb::cast<nb::dict>(h))
    out.push_back(adapter_of(text_from(name, "load: the name of an adapter"), parts));
  return out;
}

}  // namespace

ModelPtr loaded_model(const std::filesystem::path& path, nb::dict given) {
  const std::string from = existing(path);
  const auto integer = [&](const char* name) {
    return cast_as<std::int64_t>(given[name], concat_text("load: ", name));
  };
  const auto text = [&](const char* name) { return text_from(given[name], concat_text("load: ", name)); };
  const auto flag = [&](const char* name) { return cast_as<bool>(given[name], concat_text("load: ", name)); };
  DecoderOptions o;
  o.context = integer("context");
  o.sequences = integer("sequences");
  o.max_tokens = integer("max_tokens");
  o.page = integer("page");
  o.pages = integer("pages");
  o.check_memory = flag("check_memory");
  o.whole_windows = flag("whole_windows");
  if (!nb::object(given["memory_limit"]).is_none()) {
    const std::int64_t limit = integer("memory_limit");
    if (limit < 1)
      raise(ErrorCode::InvalidArgument, concat_text("load: memory_limit must be at least 1 byte, got ", limit));
    o.memory_limit = static_cast<std::size_t>(limit);
  }
  set_cache_type(o, text("cache"));
  const std::string precision = text("matmul_precision");
  o.matmul_precision = matmul_precision_named(precision, from);
  o.adapters = adapters_from(given["adapters"]);
  EngineOptions engine;
  engine.prefix_cache = flag("prefix_cache");
  engine.draft.tokens = integer("draft_tokens");
  engine.draft.lookup = integer("lookup");
  if (const nb::object folder = given["packed_weights"]; !folder.is_none()) {
    if (!is_path(folder))
      raise(ErrorCode::DTypeMismatch, concat_text("load: packed_weights must be a path, got ", described(folder)));
    o.packed_weights = nb::cast<std::filesystem::path>(folder).string();
    if (o.packed_weights.empty()) raise(ErrorCode::InvalidArgument, "load: packed_weights must not be an empty path");
  }
  o.verify_packed_weights = flag("verify_packed_weights");
  std::optional<std::string> drafts_from;
  if (const nb::object draft = given["draft"]; !draft.is_none()) {
    if (!is_path(draft))
      raise(ErrorCode::DTypeMismatch, concat_text("load: draft must be a path, got ", described(draft)));
    drafts_from = existing(nb::cast<std::filesystem::path>(draft));
  }
  const std::string usual = o.adapters.empty() || nb::isinstance<nb::dict>(given["adapters"]) ? "" : kUsualAdapter;
  const Session session = session_for(text("device"), cast_as<int>(given["threads"], "load: threads"), "", "", "",
                                      nullptr, device_options_from(given["device_options"]));
  const CtrlC interruptible(true);
  const nb::gil_scoped_release free;
  LanguageModel m = load_language_model(from, o, session);
  std::vector<std::string> problems;
  const auto add_problems = [&](const DecoderModel& model) {
    if (!model.packed_weights()) return;
    for (std::string& problem : model.packed_weights()->problems()) problems.push_back(std::move(problem));
  };
  add_problems(m.decoder);
  std::vector<std::string> file_problems = m.problems;
  std::optional<DraftModel> draft;
  if (drafts_from) {
    o.matmul_precision = matmul_precision_named(precision, *drafts_from);
    draft = load_draft_model(*drafts_from, o, m.decoder, session);
    add_problems(draft->decoder);
  }
  auto loaded = std::make_shared<PyLanguageModel>(std::move(m), from, usual, engine, std::move(draft));
  loaded->packed_weight_problems = std::move(problems);
  loaded->problems = std::move(file_problems);
  return loaded;
}

}  // namespace rlx::python
