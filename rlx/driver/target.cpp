// Targets that say something else than their backend does.
#include "rlx/driver/target.h"

#include <algorithm>
#include <utility>

namespace rlx {
namespace {

// Another target's answers, less some kinds and with a larger alignment.
class Adjusted final : public Target {
 public:
  Adjusted(std::shared_ptr<const Target> base, const OpSet& kinds, std::size_t alignment)
      : base_(std::move(base)), allowed_(kinds), kinds_(base_->kinds() & kinds), alignment_(alignment) {}

  std::string_view name() const override { return base_->name(); }
  Device device() const override { return base_->device(); }
  int threads() const override { return base_->threads(); }
  bool runtime_symbols() const override { return base_->runtime_symbols(); }
  TargetLimits limits() const override {
    TargetLimits l = base_->limits();
    l.alignment = std::max(l.alignment, alignment_);
    return l;
  }
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    const char* why = allowed_.refuses(g, id);
    return why ? why : base_->refuses(g, id);
  }
  bool by_kind() const override { return base_->by_kind(); }
  bool on_host(const Graph& g, NodeId id) const override { return allowed_.claims(g, id) && base_->on_host(g, id); }
  RegionLimits region_limits() const override { return base_->region_limits(); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    return base_->reads_strided(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return base_->in_place(g, id, operand, result);
  }
  bool plans_bodies(const Graph& g, NodeId id) const override { return base_->plans_bodies(g, id); }
  std::optional<Packing> packing(const Graph& g, NodeId id, int operand, std::int64_t k,
                                 std::int64_t n) const override {
    return base_->packing(g, id, operand, k, n);
  }

 private:
  std::shared_ptr<const Target> base_;
  OpSet allowed_, kinds_;
  std::size_t alignment_;
};

void require(const std::shared_ptr<const Target>& base, std::string_view who) {
  if (!base)
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": no target was given (a null pointer)"),
                "take a session's: session.target()");
}

}  // namespace

std::shared_ptr<const Target> limited_to(std::shared_ptr<const Target> base, const OpSet& kinds) {
  require(base, "limited_to");
  return std::make_shared<const Adjusted>(std::move(base), kinds, 0);
}

std::shared_ptr<const Target> with_alignment(std::shared_ptr<const Target> base, std::size_t bytes) {
  require(base, "with_alignment");
  if (bytes <= base->limits().alignment) return base;
  return std::make_shared<const Adjusted>(std::move(base), OpSet::everything(), bytes);
}

}  // namespace rlx
