// Builds the automaton of all reachable rules, without states that cannot reach an end.
#include "rlx/generation/grammar/automaton.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/generation/grammar/nfa.h"
#include "rlx/generation/grammar/split_repetitions.h"

namespace rlx {
namespace {

// Limits of a build of about a second for any grammar. A step takes tens of nanoseconds.
constexpr std::uint64_t kMaxStates = 1'000'000, kMaxEdges = 8'000'000, kMaxSteps = 20'000'000;

class AutomatonBuilder {
 public:
  explicit AutomatonBuilder(const GrammarRules& rules) : rules_(rules), sizes_(rules) {}

  Automaton build() {
    states_.emplace_back().accepts = true;  // kDone
    starts_.assign(rules_.rules().size(), kNoState);
    order_.push_back(rules_.root());
    needed_.assign(rules_.rules().size(), false);
    needed_[rules_.root()] = true;
    for (std::size_t i = 0; i < order_.size(); ++i) add_rule(order_[i]);
    const std::vector<bool> ends = states_that_end();
    refuse_endless(ends);
    merge_done();
    freeze(ends);
    find_byte_classes();
    return std::move(out_);
  }

 private:
  void add_rule(RuleId rule) {
    std::optional<std::vector<NfaState>> own = determinize(build_nfa(rules_, sizes_, rule, left_), left_.steps);
    if (!own) throw too_large(rules_, rule);
    const auto base = static_cast<StateId>(states_.size());
    starts_[rule] = base;
    for (NfaState& s : *own) {
      num_edges_ += s.edges.size() + s.calls.size();
      if (num_edges_ > kMaxEdges || states_.size() > kMaxStates) throw too_large(rules_, rule);
      NfaState& copy = states_.emplace_back(std::move(s));
      for (Automaton::ByteEdge& e : copy.edges) e.target += base;
      for (Automaton::CallEdge& e : copy.calls) {
        e.target += base;
        if (needed_[e.rule]) continue;
        needed_[e.rule] = true;
        order_.push_back(e.rule);
      }
      if (copy.twin != kNoState) copy.twin += base;
    }
  }

  // States from which the end of their rule is reachable, by a backward search from the ends. A call needs two
  // conditions: its rule ends, and its target reaches an end.
  std::vector<bool> states_that_end() const {
    struct Needs {
      StateId from;
      std::size_t call;  // which of its calls waits, or kNoCall
    };
    std::vector<std::size_t> begins(states_.size() + 2);  // offsets of the waiters for each state, once all are placed
    const auto for_each_need = [&](const auto& visit) {
      std::size_t call = 0;
      for (StateId s = 0; s < states_.size(); ++s) {
        for (const Automaton::ByteEdge& e : states_[s].edges) visit(e.target, Needs{s, kNoCall});
        for (const Automaton::CallEdge& e : states_[s].calls) {
          visit(e.target, Needs{s, call});
          visit(starts_[e.rule], Needs{s, call++});
        }
      }
      return call;
    };
    const std::size_t num_calls =
        for_each_need([&](StateId wanted, const Needs&) { ++begins[wanted + std::size_t{2}]; });
    for (std::size_t s = 2; s < begins.size(); ++s) begins[s] += begins[s - 1];
    std::vector<Needs> wanted_by(begins.back());
    (void)for_each_need([&](StateId wanted, const Needs& n) { wanted_by[begins[wanted + std::size_t{1}]++] = n; });
    std::vector<std::uint8_t> missing(num_calls, 2);
    std::vector<bool> ends(states_.size());
    std::vector<StateId> work;
    for (StateId s = 0; s < states_.size(); ++s) {
      if (!states_[s].accepts) continue;
      ends[s] = true;
      work.push_back(s);
    }
    while (!work.empty()) {
      const StateId s = work.back();
      work.pop_back();
      for (std::size_t i = begins[s]; i < begins[s + std::size_t{1}]; ++i) {
        const Needs& n = wanted_by[i];
        if (n.call != kNoCall && --missing[n.call] != 0) continue;
        if (ends[n.from]) continue;
        ends[n.from] = true;
        work.push_back(n.from);
      }
    }
    return ends;
  }

  void refuse_endless(const std::vector<bool>& ends) const {
    for (const RuleId rule : order_) {
      if (ends[starts_[rule]]) continue;
      const GrammarRule& r = rules_.rules()[rule];
      if (r.may_be_empty && rule != rules_.root()) continue;
      const std::string place = r.where.empty() ? "" : r.where + ": ";
      if (r.may_be_empty) throw Error(ErrorCode::BadFile, place + "no value fits this schema");
      throw Error(Diagnostic{ErrorCode::BadFile,
                             concat_text(place, "no text matches rule '", r.name, "'"),
                             {},
                             "the rule always recurses: give it an alternative that ends"});
    }
  }

  // Merges all states that only accept.
  void merge_done() {
    const auto merged = [&](StateId s) {
      const NfaState& n = states_[s];
      return n.accepts && n.edges.empty() && n.calls.empty() ? kDone : s;
    };
    for (NfaState& s : states_) {
      for (Automaton::ByteEdge& e : s.edges) e.target = merged(e.target);
      for (Automaton::CallEdge& e : s.calls) e.target = merged(e.target);
    }
  }

  void freeze(const std::vector<bool>& ends) {
    // Dense ids for the live states; kDone stays first.
    std::vector<StateId> ids(states_.size(), kNoState);
    StateId count = 0;
    for (StateId s = 0; s < states_.size(); ++s)
      if (ends[s]) ids[s] = count++;
    for (StateId s = 0; s < states_.size(); ++s) {
      if (!ends[s]) continue;
      Automaton::State state;
      state.edges = static_cast<std::uint32_t>(out_.byte_edges.size());
      state.calls = static_cast<std::uint32_t>(out_.call_edges.size());
      state.accepts = states_[s].accepts;
      if (states_[s].twin != kNoState && ends[states_[s].twin]) {
        state.twin = ids[states_[s].twin];
        state.horizon = states_[s].horizon;
      }
      for (const Automaton::ByteEdge& e : states_[s].edges)
        if (ends[e.target]) out_.byte_edges.push_back({e.first, e.last, ids[e.target]});
      for (const Automaton::CallEdge& e : states_[s].calls)
        if (ends[e.target] && ends[starts_[e.rule]]) out_.call_edges.push_back({e.rule, ids[e.target]});
      out_.states.push_back(state);
    }
    Automaton::State end;
    end.edges = static_cast<std::uint32_t>(out_.byte_edges.size());
    end.calls = static_cast<std::uint32_t>(out_.call_edges.size());
    out_.states.push_back(end);
    out_.starts.assign(starts_.size(), kNoState);
    for (RuleId r = 0; r < starts_.size(); ++r)
      if (starts_[r] != kNoState) out_.starts[r] = ids[starts_[r]];
    out_.root = rules_.root();
  }

  void find_byte_classes() {
    std::array<bool, 257> begins{};
    for (const Automaton::ByteEdge& e : out_.byte_edges) begins[e.first] = begins[e.last + std::size_t{1}] = true;
    std::uint32_t current = 0;
    for (std::size_t b = 0; b < 256; ++b) {
      if (b > 0 && begins[b]) ++current;
      out_.byte_class[b] = static_cast<std::uint8_t>(current);
      if (b == 0 || begins[b]) out_.class_byte[current] = static_cast<std::uint8_t>(b);
    }
    out_.num_classes = current + 1;
  }

  static constexpr std::size_t kNoCall = static_cast<std::size_t>(-1);
  const GrammarRules& rules_;
  RuleSizes sizes_;
  BuildLimits left_{kMaxStates, kMaxSteps};
  std::uint64_t num_edges_ = 0;
  std::vector<NfaState> states_;
  std::vector<StateId> starts_;
  std::vector<RuleId> order_;  // reachable rules, in order of discovery
  std::vector<bool> needed_;
  Automaton out_;
};

}  // namespace

Automaton build_automaton(const GrammarRules& rules) { return AutomatonBuilder(split_repetitions(rules)).build(); }

}  // namespace rlx
