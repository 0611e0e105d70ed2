// Reads bytes with graph structured stacks, and numbers frames and configurations.
#include "rlx/generation/grammar/stack_machine.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}

std::uint64_t hash_items(std::uint64_t h, std::span<const StackMachine::Item> items) {
  for (const StackMachine::Item& i : items) h = mix(h, std::uint64_t{i.state} << 32 | i.frame);
  return h;
}

void sort_items(std::vector<StackMachine::Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

void NumberIndex::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, slots_.size() * 2)));
  for (const Slot& s : old) {
    if (s.number == kFree) continue;
    std::size_t at = slot_of(s.hash);
    while (slots_[at].number != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = s;
  }
}

void KeySet::clear() {
  count_ = 0;
  if (++epoch_ == 0) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    epoch_ = 1;
  }
}

bool KeySet::add(std::uint64_t key) {
  if ((count_ + 1) * 2 > slots_.size()) grow();
  for (std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);;
       at = (at + 1) & (slots_.size() - 1)) {
    Slot& s = slots_[at];
    if (s.epoch != epoch_) {
      s = {key, epoch_};
      ++count_;
      return true;
    }
    if (s.key == key) return false;
  }
}

void KeySet::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  count_ = 0;
  for (const Slot& s : old)
    if (s.epoch == epoch_) (void)add(s.key);
}

StackMachine::StackMachine(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)),
      num_classes_(automaton_->num_classes),
      frames_(2),
      afters_(2, kNotYet),
      fresh_of_rule_(automaton_->num_rules()),
      fresh_epoch_(automaton_->num_rules()) {
  std::vector<Item> none;
  (void)intern_config(none, false, false);  // kDead
  std::fill(steps_.begin(), steps_.end(), kDead);
}

StackMachine::Config StackMachine::start() {
  const Item first{automaton_->starts[automaton_->root], kBottom};
  return settle({&first, 1});
}

StackMachine::Config StackMachine::alone(StateId state) {
  std::vector<Item> items{{state, kUnknown}};
  return intern_config(items, false, false);
}

StackMachine::Config StackMachine::after(Frame frame) {
  if (frame <= kUnknown) return kDead;
  if (afters_[frame] == kNotYet) {
    const std::vector<Item> items(returns(frame).begin(), returns(frame).end());
    const Config c = settle(items);
    afters_[frame] = c;
  }
  return afters_[frame];
}

StackMachine::Config StackMachine::make_step(Config from, std::uint8_t byte) {
  kernel_.clear();
  for (const Item& i : items(from)) {
    const auto edges = automaton_->edges(i.state);
    spend(edges.size());
    for (const Automaton::ByteEdge& e : edges)
      if (e.first <= byte && byte <= e.last) kernel_.push_back({e.target, i.frame});
  }
  const Config to = kernel_.empty() ? kDead : settle(kernel_);
  steps_[std::size_t{from} * num_classes_ + automaton_->byte_class[byte]] = to;
  return to;
}

int StackMachine::only_byte(Config c) const {
  if (can_end(c) || leaves_unknown(c)) return -1;
  int byte = -1;
  for (const Item& i : items(c)) {
    for (const Automaton::ByteEdge& e : automaton_->edges(i.state)) {
      if (e.first != e.last || (byte >= 0 && byte != e.first)) return -1;
      byte = e.first;
    }
  }
  return byte;
}

void StackMachine::spend(std::uint64_t steps) {
  if (steps > budget_) {
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           "the grammar is too ambiguous here: too many parses at once",
                           {},
                           "make it less ambiguous: no two alternatives should match the same text"});
  }
  budget_ -= steps;
}

StackMachine::Config StackMachine::settle(std::span<const Item> items) {
  can_end_ = leaves_unknown_ = false;
  found_.clear();
  if (const Automaton::State& only = automaton_->states[items[0].state];
      items.size() == 1 && !only.accepts && automaton_->calls(items[0].state).empty()) {
    spend(1);
    found_.push_back(items[0]);
    return intern_config(found_, false, false);
  }
  seen_.clear();
  work_.clear();
  num_fresh_ = 0;
  ++epoch_;
  for (const Item& i : items) add_item(i.state, i.frame);
  while (!work_.empty()) {
    const Item i = work_.back();
    work_.pop_back();
    if (!automaton_->edges(i.state).empty()) found_.push_back(i);
    if (automaton_->states[i.state].accepts) end_frame(i.frame);
    for (const Automaton::CallEdge& c : automaton_->calls(i.state)) call(c.rule, c.target, i.frame);
  }
  if (num_fresh_ > 0) store_fresh();
  return intern_config(found_, can_end_, leaves_unknown_);
}

void StackMachine::add_item(StateId state, Frame frame) {
  if (!seen_.add(std::uint64_t{state} << 32 | frame)) return;
  spend(1);
  work_.push_back({state, frame});
}

void StackMachine::end_frame(Frame frame) {
  if (frame == kBottom) {
    can_end_ = true;
  } else if (frame == kUnknown) {
    leaves_unknown_ = true;
  } else if ((frame & kFresh) != 0) {
    Fresh& f = fresh_[frame & ~kFresh];
    if (f.ended) return;
    f.ended = true;
    spend(f.returns.size());
    for (const Item& r : f.returns) add_item(r.state, r.frame);
  } else if (seen_.add(std::uint64_t{kNoState} << 32 | frame)) {
    spend(returns(frame).size());
    for (const Item& r : returns(frame)) add_item(r.state, r.frame);
  }
}

void StackMachine::call(RuleId rule, StateId target, Frame frame) {
  spend(1);
  if (fresh_epoch_[rule] != epoch_) {
    fresh_epoch_[rule] = epoch_;
    fresh_of_rule_[rule] = static_cast<std::uint32_t>(num_fresh_);
    if (num_fresh_ == fresh_.size()) fresh_.emplace_back();
    Fresh& f = fresh_[num_fresh_++];
    f.rule = rule;
    f.returns.clear();
    f.ended = false;
    f.color = 0;
    add_item(automaton_->starts[rule], kFresh | fresh_of_rule_[rule]);
  }
  Fresh& f = fresh_[fresh_of_rule_[rule]];
  f.returns.push_back({target, frame});
  if (f.ended) add_item(target, frame);
}

// The returns of a frame. A return that would end at once is replaced by the returns of the frame below, so tail
// recursion does not grow the stack.
std::vector<StackMachine::Item> StackMachine::without_detours(std::uint32_t fresh) {
  std::vector<Item> out;
  std::vector<Frame> work{kFresh | fresh};
  seen_.clear();
  (void)seen_.add(work[0]);
  while (!work.empty()) {
    const Frame f = work.back();
    work.pop_back();
    const auto all = current_returns(f);
    spend(all.size());
    for (const Item& r : all) {
      if (r.state != kDone || r.frame <= kUnknown)
        out.push_back(r);
      else if (seen_.add(r.frame))
        work.push_back(r.frame);
    }
  }
  sort_items(out);
  return out;
}

// Stores the new frames that the found items need.
void StackMachine::store_fresh() {
  fresh_order_.clear();
  bool cycle = false;
  for (const Item& i : found_)
    if ((i.frame & kFresh) != 0) cycle = order_fresh(i.frame & ~kFresh) || cycle;
  if (cycle) {
    store_group();
  } else {
    for (const std::uint32_t n : fresh_order_) {
      std::vector<Item>& own = fresh_[n].returns;
      for (Item& r : own)
        if ((r.frame & kFresh) != 0) r.frame = fresh_[r.frame & ~kFresh].stored;
      std::sort(own.begin(), own.end());
      fresh_[n].stored = intern_frames({&own, 1});
    }
  }
  for (Item& i : found_)
    if ((i.frame & kFresh) != 0) i.frame = fresh_[i.frame & ~kFresh].stored;
}

// Appends `root` and all frames it returns to, the latter first. Returns true for a cycle.
bool StackMachine::order_fresh(std::uint32_t root) {
  constexpr std::uint8_t kNew = 0, kOpen = 1, kClosed = 2;
  if (fresh_[root].color != kNew) return false;
  bool cycle = false;
  std::vector<std::pair<std::uint32_t, std::size_t>> path;
  const auto open = [&](std::uint32_t n) {
    fresh_[n].returns = without_detours(n);
    fresh_[n].color = kOpen;
    path.emplace_back(n, 0);
  };
  open(root);
  while (!path.empty()) {
    const std::uint32_t n = path.back().first;
    if (path.back().second == fresh_[n].returns.size()) {
      fresh_[n].color = kClosed;
      fresh_order_.push_back(n);
      path.pop_back();
      continue;
    }
    const Frame next = fresh_[n].returns[path.back().second++].frame;
    if ((next & kFresh) == 0) continue;
    const std::uint8_t color = fresh_[next & ~kFresh].color;
    cycle = cycle || color == kOpen;
    if (color == kNew) open(next & ~kFresh);
  }
  return cycle;
}

// Stores mutually recursive frames as one group, in the order of their rules.
void StackMachine::store_group() {
  std::sort(fresh_order_.begin(), fresh_order_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return fresh_[a].rule < fresh_[b].rule; });
  for (std::uint32_t i = 0; i < fresh_order_.size(); ++i) fresh_[fresh_order_[i]].position = i;
  std::vector<std::vector<Item>> group;
  for (const std::uint32_t n : fresh_order_) {
    std::vector<Item>& own = group.emplace_back(fresh_[n].returns);
    for (Item& r : own)
      if ((r.frame & kFresh) != 0) r.frame = kFresh | fresh_[r.frame & ~kFresh].position;
    std::sort(own.begin(), own.end());
  }
  const Frame first = intern_frames(group);
  for (const std::uint32_t n : fresh_order_) fresh_[n].stored = first + fresh_[n].position;
}

// The number of the first frame of a group. In the given returns, kFresh marks indices in the group.
StackMachine::Frame StackMachine::intern_frames(std::span<const std::vector<Item>> group) {
  std::uint64_t hash = group.size();
  for (const std::vector<Item>& own : group) hash = hash_items(mix(hash, own.size()), own);
  const auto next = static_cast<Frame>(frames_.size());
  const auto stored = [](const Item& r, Frame first) {
    return Item{r.state, (r.frame & kFresh) != 0 ? first + (r.frame & ~kFresh) : r.frame};
  };
  const Frame first = frame_index_.find_or_add(hash, next, [&](Frame f) {
    if (frames_[f].group_size != group.size()) return false;
    for (std::size_t g = 0; g < group.size(); ++g) {
      const auto have = returns(f + static_cast<Frame>(g));
      if (!std::equal(have.begin(), have.end(), group[g].begin(), group[g].end(),
                      [&](const Item& a, const Item& b) { return a == stored(b, f); }))
        return false;
    }
    return true;
  });
  if (first != next) return first;
  for (const std::vector<Item>& own : group) {
    frames_.push_back({static_cast<std::uint32_t>(returns_.size()), static_cast<std::uint32_t>(own.size()), next,
                       static_cast<std::uint32_t>(group.size())});
    for (const Item& r : own) returns_.push_back(stored(r, next));
    afters_.push_back(kNotYet);
  }
  return first;
}

StackMachine::Config StackMachine::intern_config(std::vector<Item>& items, bool can_end, bool leaves_unknown) {
  sort_items(items);
  const std::uint64_t hash = hash_items((can_end ? 1U : 0U) | (leaves_unknown ? 2U : 0U), items);
  const auto next = static_cast<Config>(configs_.size());
  const Config found = config_index_.find_or_add(hash, next, [&](Config c) {
    const auto have = this->items(c);
    return configs_[c].can_end == can_end && configs_[c].leaves_unknown == leaves_unknown &&
           std::equal(have.begin(), have.end(), items.begin(), items.end());
  });
  if (found != next) return found;
  spend(num_classes_ / 4);
  configs_.push_back(
      {static_cast<std::uint32_t>(items_.size()), static_cast<std::uint32_t>(items.size()), can_end, leaves_unknown});
  items_.insert(items_.end(), items.begin(), items.end());
  steps_.resize(configs_.size() * num_classes_, kNotYet);
  return next;
}

std::vector<StackMachine::Config> StackMachine::adopt(const StackMachine& other, std::span<const Config> configs) {
  // Frames have larger numbers than the frames they return to, except within a group.
  std::vector<bool> needed(other.frames_.size());
  for (const Config c : configs)
    for (const Item& i : other.items(c)) needed[i.frame] = true;
  std::vector<Frame> firsts;
  for (Frame f = static_cast<Frame>(other.frames_.size()); f-- > 2;) {
    const StoredFrame& stored = other.frames_[f];
    if (stored.group != f) {
      if (needed[f]) needed[stored.group] = true;
      continue;
    }
    if (!needed[f]) continue;
    firsts.push_back(f);
    for (Frame member = f; member < f + stored.group_size; ++member)
      for (const Item& r : other.returns(member)) needed[r.frame] = true;
  }
  std::vector<Frame> mine(other.frames_.size());
  mine[kUnknown] = kUnknown;
  for (auto first = firsts.rbegin(); first != firsts.rend(); ++first) {
    const std::uint32_t size = other.frames_[*first].group_size;
    std::vector<std::vector<Item>> group;
    for (Frame member = *first; member < *first + size; ++member) {
      std::vector<Item>& own = group.emplace_back();
      for (const Item& r : other.returns(member))
        own.push_back({r.state, r.frame - *first < size ? kFresh | (r.frame - *first) : mine[r.frame]});
      std::sort(own.begin(), own.end());
    }
    const Frame stored = intern_frames(group);
    for (std::uint32_t i = 0; i < size; ++i) mine[*first + i] = stored + i;
  }
  std::vector<Config> out;
  for (const Config c : configs) {
    std::vector<Item> items;
    for (const Item& i : other.items(c)) items.push_back({i.state, mine[i.frame]});
    out.push_back(intern_config(items, other.can_end(c), other.leaves_unknown(c)));
  }
  return out;
}

std::size_t StackMachine::bytes() const {
  return frames_.capacity() * sizeof(StoredFrame) + returns_.capacity() * sizeof(Item) +
         afters_.capacity() * sizeof(Config) + configs_.capacity() * sizeof(StoredConfig) +
         items_.capacity() * sizeof(Item) + steps_.capacity() * sizeof(Config) + frame_index_.bytes() +
         config_index_.bytes();
}

}  // namespace rlx
