// The subset construction. Calls of rules are symbols like bytes.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "rlx/generation/grammar/nfa.h"

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

// Counts steps as it works, so that an oversized rule is refused early.
class Determinizer {
 public:
  Determinizer(const std::vector<NfaState>& nfa, std::uint64_t steps)
      : nfa_(nfa), steps_(steps), seen_(nfa.size()), set_of_one_(nfa.size(), kNoState), target_(nfa.size(), kNoState) {}

  // Nothing when there would be too many states or steps.
  std::optional<std::vector<NfaState>> subsets() {
    const std::size_t max_states = 4 * nfa_.size() + 64;
    (void)target_of(0);
    StateSet set;
    for (StateId id = 0; id < sets_.size(); ++id) {
      set.assign(members(id).begin(), members(id).end());
      spend(1 + set.size());
      if (sets_.size() > max_states || out_of_steps_) return std::nullopt;
      NfaState out;
      for (const StateId s : set) out.accepts = out.accepts || nfa_[s].accepts;
      if (!add_plain_edges(set, out)) add_byte_edges(set, out);
      add_calls(set, out);
      states_.push_back(std::move(out));
    }
    find_twins();
    return std::move(states_);
  }

  // Every state with the edges of its empty-edge closure. Nothing when that takes too many steps.
  std::optional<std::vector<NfaState>> without_jumps() {
    std::vector<NfaState> out(nfa_.size());
    for (StateId s = 0; s < nfa_.size(); ++s) {
      for (const StateId member : closure({s})) {
        const NfaState& m = nfa_[member];
        spend(1 + m.edges.size() + m.calls.size());
        out[s].accepts = out[s].accepts || m.accepts;
        out[s].edges.insert(out[s].edges.end(), m.edges.begin(), m.edges.end());
        out[s].calls.insert(out[s].calls.end(), m.calls.begin(), m.calls.end());
      }
      if (out_of_steps_) return std::nullopt;
      out[s].twin = nfa_[s].twin;
      out[s].horizon = nfa_[s].horizon;
    }
    return out;
  }

  std::uint64_t steps_left() const { return steps_; }

 private:
  void spend(std::uint64_t steps) {
    out_of_steps_ = out_of_steps_ || steps > steps_;
    steps_ -= std::min(steps, steps_);
  }

  static bool does_something(const NfaState& n) { return n.accepts || !n.edges.empty() || !n.calls.empty(); }

  // The empty-edge closure of `set`, without states that have no effect.
  StateSet closure(StateSet set) {
    ++mark_;
    StateSet members, work;
    for (const StateId s : set) {
      if (seen_[s] == mark_) continue;
      seen_[s] = mark_;
      work.push_back(s);
    }
    while (!work.empty() && !out_of_steps_) {
      const StateId s = work.back();
      work.pop_back();
      const NfaState& n = nfa_[s];
      spend(1 + n.jumps.size());
      if (does_something(n)) members.push_back(s);
      for (const StateId to : n.jumps) {
        if (seen_[to] == mark_) continue;
        seen_[to] = mark_;
        work.push_back(to);
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  std::span<const StateId> members(StateId id) const { return {members_.data() + sets_[id].first, sets_[id].second}; }
  StateId add_set(std::span<const StateId> set) {
    sets_.emplace_back(members_.size(), set.size());
    members_.insert(members_.end(), set.begin(), set.end());
    return static_cast<StateId>(sets_.size() - 1);
  }
  StateId id_of_one(StateId s) {
    if (set_of_one_[s] == kNoState) set_of_one_[s] = add_set({&s, 1});
    return set_of_one_[s];
  }
  StateId id_of(StateSet set) {
    if (set.size() == 1) return id_of_one(set[0]);
    const auto [entry, is_new] = ids_.try_emplace(std::move(set), static_cast<StateId>(sets_.size()));
    return is_new ? add_set(entry->first) : entry->second;
  }
  // The state set that an edge to `s` leads to.
  StateId target_of(StateId s) {
    if (target_[s] == kNoState) {
      const NfaState& n = nfa_[s];
      target_[s] = n.jumps.empty() && does_something(n) ? id_of_one(s) : id_of(closure({s}));
    }
    return target_[s];
  }
  StateId target_of(StateSet set) { return set.size() == 1 ? target_of(set[0]) : id_of(closure(std::move(set))); }

  static void add_edge(int first, int last, StateId to, NfaState& out) {
    if (!out.edges.empty() && out.edges.back().target == to && out.edges.back().last + 1 == first)
      out.edges.back().last = static_cast<std::uint8_t>(last);
    else
      out.edges.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), to});
  }

  // Copies the edges of a single state that is already deterministic, which most are. Otherwise does nothing and
  // returns false.
  bool add_plain_edges(const StateSet& set, NfaState& out) {
    if (set.size() != 1) return set.empty();
    const std::vector<Automaton::ByteEdge>& edges = nfa_[set[0]].edges;
    for (std::size_t i = 1; i < edges.size(); ++i)
      if (edges[i].first <= edges[i - 1].last) return false;
    spend(edges.size());
    out.edges.reserve(edges.size());
    for (const Automaton::ByteEdge& e : edges) add_edge(e.first, e.last, target_of(e.target), out);
    return true;
  }

  void add_byte_edges(const StateSet& set, NfaState& out) {
    std::vector<Automaton::ByteEdge> all;
    std::array<bool, 257> cut{};  // where an edge begins, or has just ended
    for (const StateId s : set) {
      for (const Automaton::ByteEdge& e : nfa_[s].edges) {
        all.push_back(e);
        cut[e.first] = cut[e.last + std::size_t{1}] = true;
      }
    }
    spend(all.size());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Automaton::ByteEdge> open;  // edges that contain the current bytes
    std::size_t next = 0;
    for (int first = 0; first < 256 && !out_of_steps_;) {
      int last = first;
      while (!cut[static_cast<std::size_t>(last) + 1] && last < 255) ++last;
      std::erase_if(open, [&](const auto& e) { return e.last < first; });
      for (; next < all.size() && all[next].first == first; ++next) open.push_back(all[next]);
      if (!open.empty()) {
        spend(open.size());
        StateSet targets;
        targets.reserve(open.size());
        for (const Automaton::ByteEdge& e : open) targets.push_back(e.target);
        add_edge(first, last, target_of(std::move(targets)), out);
      }
      first = last + 1;
    }
  }

  void add_calls(const StateSet& set, NfaState& out) {
    std::vector<Automaton::CallEdge> all;
    for (const StateId s : set) all.insert(all.end(), nfa_[s].calls.begin(), nfa_[s].calls.end());
    spend(all.size());
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return std::pair(a.rule, a.target) < std::pair(b.rule, b.target); });
    for (std::size_t i = 0; i < all.size();) {
      const RuleId rule = all[i].rule;
      StateSet targets;
      for (; i < all.size() && all[i].rule == rule; ++i) targets.push_back(all[i].target);
      out.calls.push_back({rule, target_of(std::move(targets))});
    }
  }

  // The twin of a set is the set of twins, if that set was reached too.
  void find_twins() {
    for (StateId id = 0; id < sets_.size(); ++id) {
      StateSet twins;
      std::uint32_t horizon = 0xFFFFFFFF;
      for (const StateId s : members(id)) {
        twins.push_back(nfa_[s].twin == kNoState ? s : nfa_[s].twin);
        if (nfa_[s].twin != kNoState) horizon = std::min(horizon, nfa_[s].horizon);
      }
      if (horizon == 0xFFFFFFFF) continue;
      std::sort(twins.begin(), twins.end());
      twins.erase(std::unique(twins.begin(), twins.end()), twins.end());
      const auto entry = ids_.find(twins);
      const StateId twin = twins.size() == 1 ? set_of_one_[twins[0]] : entry == ids_.end() ? kNoState : entry->second;
      if (twin == kNoState || twin == id) continue;
      states_[id].twin = twin;
      states_[id].horizon = horizon;
    }
  }

  const std::vector<NfaState>& nfa_;
  std::uint64_t steps_;
  bool out_of_steps_ = false;
  std::vector<std::uint32_t> seen_;
  std::uint32_t mark_ = 0;
  std::vector<StateId> members_;                             // members of all sets
  std::vector<std::pair<std::size_t, std::size_t>> sets_;    // by id: offset of its members, and their number
  std::unordered_map<StateSet, StateId, StateSetHash> ids_;  // of sets with other than one member
  std::vector<StateId> set_of_one_, target_;  // by state: its singleton set, and its target_of, if computed
  std::vector<NfaState> states_;
};

}  // namespace

std::optional<std::vector<NfaState>> determinize(const std::vector<NfaState>& nfa, std::uint64_t& steps) {
  // Half of the steps for determinisation, and at most an amount in proportion to the rule's size.
  const std::uint64_t tried = std::min<std::uint64_t>(steps / 2, 512 * nfa.size() + 65536);
  Determinizer better(nfa, tried);
  std::optional<std::vector<NfaState>> out = better.subsets();
  steps -= tried - better.steps_left();
  if (out) return out;
  Determinizer plain(nfa, steps);
  out = plain.without_jumps();
  steps = plain.steps_left();
  return out;
}

}  // namespace rlx
