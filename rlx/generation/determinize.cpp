// The subset construction, calls of rules being letters like bytes.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "rlx/generation/nfa.h"

namespace rlx {
namespace {

using StateSet = std::vector<StateId>;

struct StateSetHash {
  std::size_t operator()(const StateSet& set) const {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const StateId s : set) h = (h ^ s) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};

class Determinizer {
 public:
  explicit Determinizer(const std::vector<NfaState>& nfa) : nfa_(nfa), seen_(nfa.size()) {}

  // Nothing when there would be too many states.
  std::optional<std::vector<NfaState>> subsets() {
    const std::size_t max_states = 4 * nfa_.size() + 64, max_members = 64 * nfa_.size() + 16384;
    std::size_t num_members = 0;
    (void)id_of(closure({0}));
    for (StateId id = 0; id < sets_.size(); ++id) {
      const StateSet set = *sets_[id];
      num_members += set.size();
      if (sets_.size() > max_states || num_members > max_members) return std::nullopt;
      NfaState out;
      for (const StateId s : set) out.accepts = out.accepts || nfa_[s].accepts;
      add_byte_edges(set, out);
      add_calls(set, out);
      states_.push_back(std::move(out));
    }
    find_twins();
    return std::move(states_);
  }

  // Every state with the edges of all that it jumps to.
  std::vector<NfaState> without_jumps() {
    std::vector<NfaState> out(nfa_.size());
    for (StateId s = 0; s < nfa_.size(); ++s) {
      for (const StateId member : closure({s})) {
        const NfaState& m = nfa_[member];
        out[s].accepts = out[s].accepts || m.accepts;
        out[s].edges.insert(out[s].edges.end(), m.edges.begin(), m.edges.end());
        out[s].calls.insert(out[s].calls.end(), m.calls.begin(), m.calls.end());
      }
      out[s].twin = nfa_[s].twin;
      out[s].horizon = nfa_[s].horizon;
    }
    return out;
  }

 private:
  // All that `set` jumps to, of which only states that do something are kept.
  StateSet closure(StateSet set) {
    ++mark_;
    StateSet members, work;
    for (const StateId s : set) {
      if (seen_[s] == mark_) continue;
      seen_[s] = mark_;
      work.push_back(s);
    }
    while (!work.empty()) {
      const StateId s = work.back();
      work.pop_back();
      const NfaState& n = nfa_[s];
      if (n.accepts || !n.edges.empty() || !n.calls.empty()) members.push_back(s);
      for (const StateId to : n.jumps) {
        if (seen_[to] == mark_) continue;
        seen_[to] = mark_;
        work.push_back(to);
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  StateId id_of(StateSet set) {
    const auto [entry, is_new] = ids_.try_emplace(std::move(set), static_cast<StateId>(sets_.size()));
    if (is_new) sets_.push_back(&entry->first);
    return entry->second;
  }

  void add_byte_edges(const StateSet& set, NfaState& out) {
    std::vector<Automaton::ByteEdge> all;
    std::vector<int> cuts;  // where an edge begins, or has just ended
    for (const StateId s : set) {
      for (const Automaton::ByteEdge& e : nfa_[s].edges) {
        all.push_back(e);
        cuts.push_back(e.first);
        cuts.push_back(e.last + 1);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      StateSet targets;
      for (const Automaton::ByteEdge& e : all)
        if (e.first <= cuts[i] && cuts[i] <= e.last) targets.push_back(e.target);
      if (targets.empty()) continue;
      const StateId to = id_of(closure(std::move(targets)));
      const auto last = static_cast<std::uint8_t>(cuts[i + 1] - 1);
      if (!out.edges.empty() && out.edges.back().target == to && out.edges.back().last + 1 == cuts[i])
        out.edges.back().last = last;
      else
        out.edges.push_back({static_cast<std::uint8_t>(cuts[i]), last, to});
    }
  }

  void add_calls(const StateSet& set, NfaState& out) {
    std::vector<Automaton::CallEdge> all;
    for (const StateId s : set) all.insert(all.end(), nfa_[s].calls.begin(), nfa_[s].calls.end());
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return std::pair(a.rule, a.target) < std::pair(b.rule, b.target); });
    for (std::size_t i = 0; i < all.size();) {
      const RuleId rule = all[i].rule;
      StateSet targets;
      for (; i < all.size() && all[i].rule == rule; ++i) targets.push_back(all[i].target);
      out.calls.push_back({rule, id_of(closure(std::move(targets)))});
    }
  }

  // The twin of a set is the set of twins, where that came up too.
  void find_twins() {
    for (StateId id = 0; id < sets_.size(); ++id) {
      StateSet twins;
      std::uint32_t horizon = 0xFFFFFFFF;
      for (const StateId s : *sets_[id]) {
        twins.push_back(nfa_[s].twin == kNoState ? s : nfa_[s].twin);
        if (nfa_[s].twin != kNoState) horizon = std::min(horizon, nfa_[s].horizon);
      }
      if (horizon == 0xFFFFFFFF) continue;
      std::sort(twins.begin(), twins.end());
      twins.erase(std::unique(twins.begin(), twins.end()), twins.end());
      const auto entry = ids_.find(twins);
      if (entry == ids_.end() || entry->second == id) continue;
      states_[id].twin = entry->second;
      states_[id].horizon = horizon;
    }
  }

  const std::vector<NfaState>& nfa_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t mark_ = 0;
  std::unordered_map<StateSet, StateId, StateSetHash> ids_;
  std::vector<const StateSet*> sets_;  // by id; keys of a map keep their place
  std::vector<NfaState> states_;
};

}  // namespace

std::vector<NfaState> determinize(const std::vector<NfaState>& nfa) {
  if (auto subsets = Determinizer(nfa).subsets()) return std::move(*subsets);
  return Determinizer(nfa).without_jumps();
}

}  // namespace rlx
