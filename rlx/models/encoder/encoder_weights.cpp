// Views of checkpoints with other tensor names.
#include "rlx/models/encoder.h"

#include <algorithm>
#include <map>

#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// Tensors of several files, each under a new name.
class RenamedWeights final : public WeightLoader {
 public:
  void add(std::string name, std::shared_ptr<const WeightLoader> from, std::string stored) {
    if (places_.emplace(name, Place{std::move(from), std::move(stored)}).second) names_.push_back(std::move(name));
  }
  std::vector<std::string> names() const override { return names_; }
  std::optional<TensorView> find(std::string_view name) const override {
    const Place* p = place(name);
    return p ? p->from->find(p->stored) : std::nullopt;
  }
  std::optional<SourceIdentity> identity(std::string_view name) const override {
    const Place* p = place(name);
    return p ? p->from->identity(p->stored) : std::nullopt;
  }
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override {
    if (const Place* p = place(name)) p->from->drop_pages(p->stored, first, bytes);
  }

 private:
  struct Place {
    std::shared_ptr<const WeightLoader> from;
    std::string stored;
  };
  const Place* place(std::string_view name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
  }
  std::map<std::string, Place, std::less<>> places_;
  std::vector<std::string> names_;
};

bool starts_with_any(std::string_view name, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const std::string& s) { return name.starts_with(s); });
}

}  // namespace

ModelWeights open_encoder_weights(const std::string& folder, const EncoderConfig& c, const EncoderGraphOptions& o) try {
  const std::shared_ptr<SafetensorsFolder> file = SafetensorsFolder::open(folder);
  const auto out = std::make_shared<RenamedWeights>();
  std::vector<std::string> wanted;  // names of the wanted heads
  if (o.output == EncoderOutput::Scores && c.classifier)
    for (const std::string* name : {&c.classifier->dense, &c.classifier->norm, &c.classifier->out})
      if (!name->empty()) wanted.push_back(*name + ".");
  for (const std::string& stored : file->names()) {
    const std::string name = stored.starts_with(c.names.prefix) ? stored.substr(c.names.prefix.size()) : stored;
    if (!starts_with_any(name, c.names.others) || starts_with_any(name, wanted)) out->add(name, file, stored);
  }
  if (o.output == EncoderOutput::Text)
    for (const DenseSpec& d : o.dense) {
      const std::string inside = d.name.substr(0, d.name.rfind('/'));
      const std::shared_ptr<SafetensorsFolder> part = SafetensorsFolder::open(join_path(folder, inside));
      for (const std::string& stored : part->names()) out->add(concat_text(inside, "/", stored), part, stored);
    }
  return {out, file->source()};
} catch (const std::bad_alloc&) {
  throw_out_of_memory("open_encoder_weights");
}

}  // namespace rlx
