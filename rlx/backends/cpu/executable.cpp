// Binding an LIR to memory, and running it: pointers are final except those into callers' buffers.
#include "rlx/backends/cpu/executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "rlx/backends/cpu/access_map.h"
#include "rlx/driver/chunk_audit.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/roots.h"

namespace rlx::cpu {
namespace {

constexpr double kTinyNs = 5'000;    // below this a step is not worth a second thread
constexpr double kGroupNs = 30'000;  // tiny steps are run together up to this much work
constexpr std::size_t kAlignment = 64;

std::size_t round_up(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

/// 64-byte aligned bytes.
struct AlignedBytes {
  std::byte* data = nullptr;
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t n)
      : data(static_cast<std::byte*>(::operator new(round_up(n + 1), std::align_val_t{kAlignment}, std::nothrow))) {
    if (!data) throw Error(ErrorCode::OutOfMemory, concat_text("no memory for ", n, " bytes of kernel scratch"));
  }
  AlignedBytes(AlignedBytes&& other) noexcept : data(std::exchange(other.data, nullptr)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data, other.data);
    return *this;
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() { ::operator delete(data, std::align_val_t{kAlignment}); }
};

/// A copy made after the steps: of a value to an output or to a state.
struct FinalCopy {
  StridedCopy copy;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t bytes = 0;  // when dense: a plain copy
  void run(const KernelTable& k) const {
    if (bytes > 0) {
      if (y != x) std::memmove(y, x, bytes);
    } else {
      for (std::int64_t c = 0; c < copy.chunks; ++c) k.strided_copy(copy, x, y, c);
    }
  }
};

/// A stretch of pieces that one schedule step runs: one parallel piece, or several small ones in order.
struct Group {
  const Piece* first = nullptr;
  std::size_t count = 0;
  static void run_all(void* ctx, std::int64_t) {
    const Group& g = *static_cast<const Group*>(ctx);
    for (std::size_t i = 0; i < g.count; ++i) {
      const Piece& p = g.first[i];
      for (std::int64_t c = 0; c < p.chunks; ++c) p.run(p.ctx, c);
    }
  }
};

/// What each schedule step waits for, gathered in any order.
class WaitLists {
 public:
  void add(std::int32_t step, Wait wait) {
    if (lists_.size() <= static_cast<std::size_t>(step)) lists_.resize(static_cast<std::size_t>(step) + 1);
    if (wait.step != step) lists_[static_cast<std::size_t>(step)].push_back(wait);
  }
  /// Takes `found` as how `step` waits for those steps; of the others it waits for all.
  void refine(std::int32_t step, const std::vector<Wait>& found) {
    refined_.resize(std::max(refined_.size(), static_cast<std::size_t>(step) + 1));
    auto& list = refined_[static_cast<std::size_t>(step)];
    list.insert(list.end(), found.begin(), found.end());
  }
  /// Writes the lists into the steps; they have to live until a schedule was made of them.
  void give_to(std::vector<ScheduleStep>& steps) {
    lists_.resize(steps.size());
    refined_.resize(steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      merge_waits(lists_[s]);
      merge_waits(refined_[s]);
      auto refined = refined_[s].begin();
      const auto give = [&](const Wait& w) {
        predecessors_.push_back(w.step);
        waits_.push_back(w.waits);
      };
      for (const Wait& w : lists_[s]) {
        while (refined != refined_[s].end() && refined->step < w.step) give(*refined++);
        give(refined != refined_[s].end() && refined->step == w.step ? *refined++ : w);
      }
      while (refined != refined_[s].end()) give(*refined++);
      ends_.push_back(predecessors_.size());
    }
    std::size_t begin = 0;
    for (std::size_t s = 0; s < steps.size(); begin = ends_[s++]) {
      steps[s].predecessors = std::span(predecessors_).subspan(begin, ends_[s] - begin);
      steps[s].waits = std::span(waits_).subspan(begin, ends_[s] - begin);
    }
  }

 private:
  std::vector<std::vector<Wait>> lists_, refined_;  // by step
  std::vector<std::int32_t> predecessors_;
  std::vector<HalfWaits> waits_;
  std::vector<std::size_t> ends_;
};

/// A piece as a step of an audited run.
struct Audited {
  Audited(const Piece& p, std::string kernel_name, std::string label)
      : piece(p), kernel(std::move(kernel_name)), node(std::move(label)) {}
  static void run(void* ctx, std::int64_t chunk) {
    Audited& a = *static_cast<Audited*>(ctx);
    a.threads.store(run_threads(), std::memory_order_relaxed);
    a.watch.enter(a.piece.chunks, a.node);
    a.piece.run(a.piece.ctx, chunk);
  }
  const Piece& piece;
  std::string kernel, node;
  ChunkWatch watch;
  std::atomic<int> threads{1};  // of the run
};

class Bound final : public BoundGraph {
 public:
  /// `is_body`: the program is a body of a node of another one, which runs it.
  Bound(const Executable& exe, const LirModule& program, std::span<const BufferView> arenas, bool is_body)
      : exe_(exe), lir_(program), is_body_(is_body), arenas_(arenas.begin(), arenas.end()) {
    program_.executable = &exe;
    const std::size_t n = lir_.plan.schedule.size();
    first_piece_.resize(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      first_piece_[i] = program_.pieces.size();
      if (!compiled(i) || makes_nothing(lir_.plan.schedule[i].node)) continue;
      LowerContext c = lowering(lir_.plan.schedule[i].node);
      row(i).lower(c);
      clear_tails(c);
    }
    first_piece_[n] = program_.pieces.size();
    if (const LirValue* first =
            program_.first_weight)  // the last product of a run fetches the first weight of the next
      program_.patches.push_back({program_.next_weight, first->place, first->index, first->offset});
    if (is_body_ || ranges().empty() || ranges().back().end >= n) make_final_copies();
    if (audited())
      make_audited_schedule();
    else
      make_stretches();
    if (program_.scratch_bytes > 0) {
      const std::size_t stride = round_up(program_.scratch_bytes) + kAlignment;  // apart, so that threads share no line
      scratch_ = AlignedBytes(stride * static_cast<std::size_t>(exe.threads()));
      program_.scratch = {scratch_.data, exe.threads() == 1 ? 0 : stride};
    }
    sort_patches();
  }

  Event submit(const RunArguments& a, Stream&) override {
    follow(a);
    const std::size_t n = lir_.plan.schedule.size();
    const StepRange range = a.range.of(n);
    if (a.times != nullptr) {
      run_timed(*a.times, range);
    } else if (audited() && range == StepRange{0, n}) {
      run_audited();
    } else if (runs_alone_ || audited()) {
      Group all{program_.pieces.data() + first_piece_[range.begin],
                first_piece_[range.end] - first_piece_[range.begin]};
      Group::run_all(&all, 0);
    } else {
      for (Segment& s : stretch(range)) {
        if (s.alone)
          s.alone->run(s.alone->ctx, 0);
        else
          ThreadPool::process().run(s.schedule, exe_.threads());
      }
    }
    if (range.end == n)
      for (const FinalCopy* c : final_copies_) c->run(exe_.kernels());
    return {};
  }

 private:
  LowerContext lowering(NodeId id) { return {lir_, id, arenas_, exe_.kernels(), exe_.planned_threads(), program_}; }

  const Row& row(std::size_t step) const {
    if (!is_body_) return exe_.row(step);
    const NodeId id = lir_.plan.schedule[step].node;
    const Row* found = find_row(lir_.graph, id);
    return found ? *found : host_row();  // the row of the node that holds the body has asked
  }
  // Threads that meet in every step would wait for those that are in the step which runs a body.
  bool audited() const { return exe_.audit() != nullptr && !is_body_; }

  // What the executable was given to compile; of a body always all.
  const std::vector<StepRange>& ranges() const { return exe_.lir().ranges; }
  bool compiled(std::size_t step) const { return is_body_ || exe_.compiled(step); }

  void run_timed(std::vector<StepTime>& times, const StepRange& range) {
    using Clock = std::chrono::steady_clock;
    const auto& steps = lir_.plan.schedule;
    times.clear();
    times.reserve(range.end - range.begin);
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto start = Clock::now();
      Group one{program_.pieces.data() + first_piece_[i], first_piece_[i + 1] - first_piece_[i]};
      Group::run_all(&one, 0);
      times.push_back({steps[i].node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
  }

  struct Tail {
    std::uint8_t* byte = nullptr;
    static void clear(const Tail& t, std::int64_t) { *t.byte &= 0x0f; }
  };
  // Half a byte behind an odd number of 4-bit elements is zero, as it is everywhere else.
  static void clear_tails(LowerContext& c) {
    for (std::uint32_t r = 0; r < c.node().num_results(); ++r) {
      const View y = c.out(static_cast<int>(r));
      if (dtype_bits(y.dtype) != 4 || y.elements() % 2 == 0) continue;
      auto& tail = c.keep<Tail>();
      c.point(tail.byte, y, y.elements() - 1);
      c.step<Tail::clear>(tail, 1, 1);
    }
  }

  // True when no result has an element. Its kernel would have nothing to write, but other extents to loop over.
  bool makes_nothing(NodeId id) const {
    const std::vector<Shape>& shapes = lir_.graph.node(id).shapes;
    if (is_ordered(lir_.graph.node(id).op)) return false;
    return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.num_elements() == 0; });
  }

  // Output copies first (they may read a state's old value), then the states. A state whose new value lies in another
  // state goes through a buffer that is filled before any state is written, so that states can change places and one
  // can take another's old value.
  void make_final_copies() {
    std::vector<const FinalCopy*> from_buffers, to_states;
    for (const LirOutputCopy& c : lir_.plan.output_copies) {
      LowerContext lower = lowering(c.value.node);
      FinalCopy& copy = add_copy(lower, lower.value(c.value));
      program_.patches.push_back({&copy.y, Place::Output, c.output, 0});
    }
    for (const LirStateCopy& c : lir_.plan.state_copies) {
      LowerContext lower = lowering(c.value.node);
      View from = lower.value(c.value);
      if (from.where->place == Place::State) {
        if (from.where->index == c.state && from.dense() && from.where->offset == 0) continue;
        FinalCopy& stage = add_copy(lower, from);
        stage.y = lower.workspace(size_bytes(from.dtype, from.elements()));
        FinalCopy& copy = lower.keep<FinalCopy>();
        copy.x = stage.y;
        program_.patches.push_back({&copy.y, Place::State, c.state, 0});
        copy.bytes = size_bytes(from.dtype, from.elements());
        from_buffers.push_back(&copy);
      } else {
        program_.patches.push_back({&add_copy(lower, from).y, Place::State, c.state, 0});
        to_states.push_back(final_copies_.back());
        final_copies_.pop_back();
      }
    }
    for (const auto& list : {to_states, from_buffers})
      final_copies_.insert(final_copies_.end(), list.begin(), list.end());
  }

  FinalCopy& add_copy(LowerContext& lower, const View& from) {
    auto& copy = lower.keep<FinalCopy>();
    lower.point(copy.x, from);
    if (from.dense()) {
      copy.bytes = size_bytes(from.dtype, from.elements());
    } else {
      check(from.rank() <= kCopyMaxRank && size_bytes(from.dtype) > 0, "a strided output of this rank or dtype");
      StridedCopy& s = copy.copy;
      s.rank = from.rank();
      s.element_bytes = static_cast<int>(size_bytes(from.dtype));
      const auto dense = row_major_strides(from.dims);
      for (std::size_t i = 0; i < from.dims.size(); ++i) {
        s.dims[i] = from.dims[i];
        s.x_strides[i] = from.strides[i];
        s.y_strides[i] = dense[i];
      }
      copy_prepare(s);
    }
    final_copies_.push_back(&copy);
    return copy;
  }

  /// Steps for all threads, or one that the thread which runs the program runs itself.
  struct Segment {
    StepSchedule schedule;
    const Piece* alone = nullptr;
  };
  struct Stretch {
    StepRange range;
    std::vector<Segment> segments;
  };

  // The ranges that runs will name, as far as that is known: a run of another one makes its schedules when it comes.
  void make_stretches() {
    double cost_ns = 0;
    for (const Piece& p : program_.pieces) cost_ns += p.cost_ns;
    // A small body is not worth waking the others at each turn.
    runs_alone_ = exe_.threads() == 1 || (is_body_ && cost_ns < kGroupNs && !exe_.finest_grain());
    if (runs_alone_) return;
    if (is_body_ || ranges().empty()) (void)stretch({0, lir_.plan.schedule.size()});
    for (const StepRange& r : ranges())
      if (!is_body_) (void)stretch(r.of(lir_.plan.schedule.size()));
  }

  std::vector<Segment>& stretch(const StepRange& range) {
    for (const auto& s : stretches_)
      if (s->range == range) return s->segments;
    auto made = std::make_unique<Stretch>(Stretch{range, make_segments(range)});
    stretches_.push_back(std::move(made));
    return stretches_.back()->segments;
  }

  // Schedules between the steps that run alone.
  std::vector<Segment> make_segments(const StepRange& range) {
    std::vector<Segment> segments;
    std::size_t from = range.begin;
    const auto close = [&](std::size_t to) {
      if (first_piece_[from] != first_piece_[to] || segments.empty()) segments.push_back({make_schedule(from, to)});
    };
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (first_piece_[i] == first_piece_[i + 1] || !program_.pieces[first_piece_[i]].alone) continue;
      close(i);
      segments.push_back({StepSchedule(), &program_.pieces[first_piece_[i]]});
      from = i + 1;
    }
    close(range.end);
    return segments;
  }

  // Cuts the pieces of LIR steps [from, to) into schedule steps: a big piece is its own step with its chunks; small
  // pieces next to each other are run by one thread as one step, which waits for all that any of them waits for.
  StepSchedule make_schedule(std::size_t from, std::size_t to) {
    const auto& steps = lir_.plan.schedule;
    std::vector<ScheduleStep> out;
    WaitLists waits;                                         // by schedule step
    std::vector<std::vector<std::int32_t>> done(to - from);  // what completes LIR step from + i
    const std::size_t first = first_piece_[from];
    std::vector<std::int32_t> step_of(first_piece_[to] - first);  // by piece from the first on
    bool open = false;                                            // the last schedule step takes more small pieces
    double group_ns = 0;
    for (std::size_t i = from; i < to; ++i) {
      std::vector<std::int32_t> before;
      for (std::int32_t p : steps[i].predecessors)
        if (const auto j = static_cast<std::size_t>(p); j >= from)  // those of earlier segments are complete
          before.insert(before.end(), done[j - from].begin(), done[j - from].end());
      for (std::size_t k = first_piece_[i]; k < first_piece_[i + 1]; ++k) {
        const Piece& p = program_.pieces[k];
        const bool tiny = (p.cost_ns < kTinyNs && !exe_.finest_grain()) || p.chunks == 1;
        const bool joins = tiny && open && group_ns + p.cost_ns <= kGroupNs;
        if (!joins) {
          groups_.push_back(std::make_unique<Group>(Group{&p, 0}));
          if (tiny) {
            out.push_back({1, Group::run_all, groups_.back().get(), {}});
          } else {
            out.push_back({p.chunks, p.run, p.ctx, {}});
          }
          open = tiny;
          group_ns = 0;
        }
        groups_.back()->count += 1;
        group_ns += p.cost_ns;
        const auto self = static_cast<std::int32_t>(out.size()) - 1;
        step_of[k - first] = self;
        for (std::int32_t s : before) waits.add(self, {s, kWaitsForAll});
        before = {self};
      }
      done[i - from] = std::move(before);
    }
    let_halves_run_ahead(from, to, step_of, out, waits);
    waits.give_to(out);
    return StepSchedule(out);
  }

  // Where steps walk rows, a half waits for the halves that touch its bytes, not for whole steps: each thread then
  // takes its sequences through many steps before it meets another. What the plan orders by way of a step in between
  // has to be found again, since that step may now be done by halves; AccessMap finds all of it.
  void let_halves_run_ahead(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                            const std::vector<ScheduleStep>& steps, WaitLists& waits) {
    const std::size_t first = first_piece_[from];
    const std::span<const Piece> pieces = std::span(program_.pieces).subspan(first, step_of.size());
    if (std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.halves.rows > 0; }) < 2) return;
    std::vector<Access> accesses;
    std::vector<std::size_t> ends;  // of the accesses of each piece
    for (std::size_t i = from; i < to; ++i)
      for (std::size_t k = first_piece_[i] - first; k < first_piece_[i + 1] - first; ++k) {
        const bool divided = steps[static_cast<std::size_t>(step_of[k])].chunks > 1;
        const bool alone = first_piece_[i + 1] - first_piece_[i] == 1;  // else the pieces share more than values
        const LowerContext c = lowering(lir_.plan.schedule[i].node);
        const std::vector<Access> own =
            node_accesses(c, divided && alone ? pieces[k].halves : RowHalves{}, divided ? kBothHalves : kLower);
        accesses.insert(accesses.end(), own.begin(), own.end());
        ends.push_back(accesses.size());
      }
    AccessMap map(lir_.plan, accesses);
    for (std::size_t k = 0, begin = 0; k < ends.size(); begin = ends[k++])
      waits.refine(step_of[k], map.add(step_of[k], std::span(accesses).subspan(begin, ends[k] - begin)));
  }

  // Every piece is a step that waits for the one before, so that threads which wait for each other in one step are not
  // waited for in another.
  void make_audited_schedule() {
    std::vector<ScheduleStep> out;
    const std::size_t n = program_.pieces.size();
    audited_.reserve(n);
    std::vector<std::int32_t> before(n);
    for (std::size_t i = 0; i < lir_.plan.schedule.size(); ++i)
      for (std::size_t k = first_piece_[i]; k < first_piece_[i + 1]; ++k) {
        const Piece& p = program_.pieces[k];
        audited_.push_back(
            std::make_unique<Audited>(p, row(i).kernel, node_label(lir_.graph, lir_.plan.schedule[i].node)));
        before[k] = static_cast<std::int32_t>(k) - 1;
        out.push_back({p.chunks, Audited::run, audited_.back().get(), std::span(before).subspan(k, k == 0 ? 0 : 1)});
      }
    schedule_ = StepSchedule(out);
  }

  void run_audited() {
    for (const auto& a : audited_) a->watch.reset();
    ThreadPool::process().run(schedule_, exe_.threads());
    AuditedRun run;
    for (const auto& a : audited_) {
      run.threads = std::max(run.threads, a->threads.load(std::memory_order_relaxed));
      run.steps.push_back({a->kernel, a->node, a->piece.chunks, a->watch.threads()});
    }
    exe_.audit()->publish(std::move(run));
  }

  void sort_patches() {
    auto& patches = program_.patches;
    std::stable_sort(patches.begin(), patches.end(), [](const Patch& a, const Patch& b) {
      return a.place != b.place ? a.place < b.place : a.index < b.index;
    });
    for (std::size_t i = 0; i < patches.size();) {
      std::size_t end = i;
      while (end < patches.size() && patches[end].place == patches[i].place && patches[end].index == patches[i].index)
        ++end;
      const Place place = patches[i].place;
      (place == Place::Input || place == Place::Output ? callers_ : tables_)
          .push_back({place, patches[i].index, i, end, nullptr});
      i = end;
    }
  }

  /// All patches of one buffer.
  struct Followed {
    Place place;
    std::uint32_t index;
    std::size_t begin, end;
    const std::byte* last;
  };

  // Rewrites the pointers into buffers that are not those of the last run.
  void follow(const RunArguments& a) {
    for (Followed& f : callers_) follow(f, f.place == Place::Input ? a.inputs : a.outputs);
    if (a.tables == seen_tables_) return;
    seen_tables_ = kNoTables;  // until all are followed
    for (Followed& f : tables_) {
      if (f.place == Place::State) {
        follow(f, a.states);
      } else {
        check(f.index < a.weights.size(), "a run with too few weights");
        point(f, a.weights[f.index].host);
      }
    }
    seen_tables_ = a.tables;
  }
  void follow(Followed& f, std::span<const RunSlot> slots) {
    check(f.index < slots.size(), "a run with too few buffers");
    point(f, slots[f.index].view.host);
  }
  void point(Followed& f, const std::byte* base) {
    if (base == f.last) return;
    f.last = base;
    for (std::size_t i = f.begin; i < f.end; ++i) {
      const Patch& p = program_.patches[i];
      const std::byte* at = base + p.offset;
      std::memcpy(p.field, &at, sizeof at);
    }
  }
  const Executable& exe_;
  const LirModule& lir_;  // the executable's, or that of the extents it is bound for, or a body's
  bool is_body_;
  std::vector<BufferView> arenas_;
  Program program_;
  std::vector<std::size_t> first_piece_;  // LIR step -> first piece
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Audited>> audited_;  // by piece; empty unless the runs are audited
  std::vector<std::unique_ptr<Stretch>> stretches_;
  StepSchedule schedule_;    // of an audited run
  bool runs_alone_ = false;  // all pieces one after the other, by the thread that runs the program
  std::vector<const FinalCopy*> final_copies_;
  std::vector<Followed> callers_, tables_;
  static constexpr std::uint64_t kNoTables = ~std::uint64_t{0};
  std::uint64_t seen_tables_ = kNoTables;
  AlignedBytes scratch_;
};

struct Workspace final : Kept {
  AlignedBytes bytes;
};

}  // namespace

std::int64_t View::elements() const { return product(dims); }

bool View::dense() const {
  std::int64_t expected = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

View LowerContext::value(Value v) const {
  const Shape& shape = lir_.graph.shape(v);
  View out;
  out.dtype = shape.dtype();
  out.dims = shape.static_dims();
  out.where = &lir_.plan.at(v);
  out.strides = out.where->strides.empty() ? row_major_strides(out.dims) : out.where->strides;
  check(out.strides.size() == out.dims.size(), "a planned value has one stride per axis");
  return out;
}

void* LowerContext::resolve(void* field, const View& v, std::int64_t element) {
  const LirValue& w = *v.where;
  const std::size_t offset =
      w.offset + static_cast<std::size_t>(element * static_cast<std::int64_t>(dtype_bits(v.dtype)) / 8);
  switch (w.place) {
    case Place::Arena:
      check(w.index < arenas_.size(), "an arena that is not bound");
      return arenas_[w.index].host + offset;
    case Place::Constant:
      return const_cast<std::byte*>(lir_.graph.node(NodeId{w.index}).op.as<ops::Constant>().value.data()) + offset;
    case Place::Input:
    case Place::Output:
    case Place::Prepared:
    case Place::State: program_.patches.push_back({field, w.place, w.index, offset}); return nullptr;
    case Place::None: break;
  }
  check(false, "a value that is read from its codes has no address");
  return nullptr;
}

void LowerContext::walks_rows(std::int64_t rows, std::int64_t group_rows, std::int64_t chunks_per_group,
                              std::initializer_list<int> operands, std::initializer_list<int> results) {
  if (program_.pieces.size() == first_piece_ || rows <= 0) return;  // a step of no chunks adds no piece
  Piece& p = program_.pieces.back();
  const std::int64_t lower = StepSchedule::lower_half(p.chunks);
  p.halves.rows = rows;
  p.halves.lower_end = std::min(rows, (lower + chunks_per_group - 1) / chunks_per_group * group_rows);
  p.halves.upper_begin = std::min(rows, lower / chunks_per_group * group_rows);
  for (int i : operands)
    if (i >= 0 && i < 32) p.halves.operands |= 1U << i;
  for (int r : results) p.halves.results |= 1U << r;
}

std::byte* LowerContext::workspace(std::size_t bytes) {
  auto kept = std::make_unique<Workspace>();
  kept->bytes = AlignedBytes(bytes);
  std::byte* data = kept->bytes.data;
  program_.kept.push_back(std::move(kept));
  return data;
}

Executable::Executable(LirModule lir, const KernelTable& kernels, const BackendOptions& options)
    : lir_(std::move(lir)),
      kernels_(kernels),
      threads_(checked_thread_count(options.threads, "threads")),
      finest_grain_(options.finest_grain),
      audit_(options.chunk_audit),
      row_of_(lir_.graph.num_nodes()) {
  for (const LirStep& s : lir_.plan.schedule) {
    if (!compiled(rows_.size())) {
      rows_.push_back(nullptr);
      continue;
    }
    const Row* row = find_row(lir_.graph, s.node);
    if (!row && runs_on_host(lir_.graph, s.node)) row = &host_row();
    if (!row)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("the cpu backend has no kernel for ", node_text(lir_.graph, s.node)),
                             node_where(lir_.graph, s.node), "legalise the graph for this target first"});
    rows_.push_back(row);
    row_of_[s.node.index] = row;
  }
  for (std::uint32_t i = 0; i < lir_.prepare.num_nodes(); ++i) {
    const auto* op = lir_.prepare.nodes()[i].op.get_if<ops::Relayout>();
    if (!op) continue;
    if (!reads_panels(kernels_, op->form, op->k, op->n))
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("the kernels of cpu (", isa_name(kernels_.isa),
                                         ") read no weight in the form '", form_text(op->form), "'"),
                             node_where(lir_.prepare, NodeId{i}), "compile the graph on this machine"});
    std::vector<std::int64_t>& begins = begins_[i];
    begins.push_back(0);
    for (std::size_t k = 0; k < op->sources.size() / 4; ++k) begins.push_back(begins.back() + op->source(k).columns);
  }
}

PanelSource Executable::panel_source(NodeId node, std::size_t source, const FormColumns& columns) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  check(source < op.sources.size() / 4, "a source that the relayout has");
  const std::int64_t begin = begins_.at(node.index)[source];  // of the columns of all matrices
  return {op, op.source(source), op.n == 0 ? 0 : begin % op.n, columns.begin, columns.end};
}

std::size_t Executable::matrix_offset(NodeId node, std::size_t source) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  const std::int64_t matrix = op.n == 0 ? 0 : begins_.at(node.index)[source] / op.n;
  return static_cast<std::size_t>(matrix * matrix_form(op.form).bytes);
}

void Executable::encode(NodeId node, std::size_t source, const FormColumns& columns, DType dtype,
                        const std::byte* values, std::byte* form) const {
  const PanelSource all = panel_source(node, source, columns);
  std::byte* panels = form + matrix_offset(node, source);
  const std::int64_t width = panels_of(all.op.form)->width;
  // Whole panels, some 256 KB each, so that no two threads write one line but at the ends of a source.
  const std::int64_t step =
      width * std::max<std::int64_t>(1, (std::int64_t{1} << 16) / std::max<std::int64_t>(1, width * all.op.k));
  const std::int64_t first = (all.first + all.begin) / step, last = (all.first + all.end + step - 1) / step;
  ThreadPool::process().parallel_for(
      last - first,
      [&](std::int64_t chunk) {
        PanelSource part = all;
        part.begin = std::max(all.begin, (first + chunk) * step - all.first);
        part.end = std::min(all.end, (first + chunk + 1) * step - all.first);
        encode_panels(kernels_, part, dtype, values, panels);
      },
      threads_);
}

void Executable::decode(NodeId node, std::size_t source, const std::byte* form, DType dtype, std::byte* values) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  decode_panels(panel_source(node, source, {0, op.source(source).columns}), form + matrix_offset(node, source), dtype,
                values);
}

std::unique_ptr<BoundGraph> Executable::bind(OpenDevice&, const LirModule& program,
                                             std::span<const BufferView> arenas) const {
  return std::make_unique<Bound>(*this, program, arenas, false);
}

std::unique_ptr<BoundGraph> LowerContext::bind_body(std::size_t body) const {
  std::vector<BufferView> arenas;
  for (std::uint32_t range : bodies().arenas[body]) arenas.push_back(body_range(range));
  return std::make_unique<Bound>(*program_.executable, bodies().modules[body], arenas, true);
}

std::string Executable::kernel_name(NodeId node) const {
  const Row* row = node.index < row_of_.size() ? row_of_[node.index] : nullptr;
  return row ? concat_text(row->kernel, " (", isa_name(kernels_.isa), ")") : "none";
}

}  // namespace rlx::cpu
