// The patterns by name, copied from the tokenizer.json files of these models.
#include "rlx/text/tokenizer/gguf_patterns.h"

namespace rlx {
namespace {

using Patterns = std::string_view;

#define RLX_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define RLX_LINES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define RLX_SIGNS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
#define RLX_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define RLX_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define RLX_ASCII_SIGNS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"

constexpr std::string_view kGpt2Words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kLlama3Words =
    RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" RLX_SIGNS RLX_LINES;
constexpr std::string_view kQwen2Words = RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" RLX_SIGNS RLX_LINES;
constexpr std::string_view kQwen35Words =
    RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" RLX_LINES;
constexpr std::string_view kTekkenWords =
    "[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "*" RLX_LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "+" RLX_LOWER
    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" RLX_LINES;
constexpr std::string_view kGpt4oWords =
    "[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "*" RLX_LOWER "+" RLX_CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER
    "+" RLX_LOWER "*" RLX_CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" RLX_LINES;
constexpr std::string_view kDeepseek3Words =
    RLX_ASCII_SIGNS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" RLX_LINES;
// Cased letters without those of newer Unicode versions, as in training.
constexpr std::string_view kDeepseekLetters =
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-"
    "\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-"
    "\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-"
    "\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-"
    "\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-"
    "\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}"
    "\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}"
    "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-"
    "\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-"
    "\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+";
constexpr std::string_view kBloomWords = " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+";
constexpr std::string_view kDeepseekSigns =
    "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+";
constexpr std::string_view kDeepseekIdeographs = "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+";

#undef RLX_CONTRACTIONS
#undef RLX_LINES
#undef RLX_SIGNS
#undef RLX_UPPER
#undef RLX_LOWER
#undef RLX_ASCII_SIGNS

constexpr Patterns kDefault[] = {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2Words, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr Patterns kGpt2[] = {kGpt2Words};
constexpr Patterns kDigits[] = {"\\p{N}", kGpt2Words};
constexpr Patterns kLlama3[] = {kLlama3Words};
constexpr Patterns kQwen2[] = {kQwen2Words};
constexpr Patterns kQwen35[] = {kQwen35Words};
constexpr Patterns kTekken[] = {kTekkenWords};
constexpr Patterns kGpt4o[] = {kGpt4oWords};
constexpr Patterns kDeepseek3[] = {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
                                   kDeepseek3Words};
constexpr Patterns kDeepseekLlm[] = {"[\\r\\n]", kDeepseekLetters,    kDeepseekSigns,
                                     "\\s+$",    kDeepseekIdeographs, "\\p{N}+"};
constexpr Patterns kDeepseekCoder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekIdeographs, "\\p{N}"};
constexpr Patterns kFalcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2Words, "[0-9][0-9][0-9]"};
constexpr Patterns kBloom[] = {kBloomWords};
constexpr Patterns kViking[] = {kBloomWords, "\\p{N}"};
constexpr Patterns kLineRuns[] = {"[^\\n]+|[\\n]+"};

constexpr GgufPreTokenizer kPreTokenizers[] = {
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"trillion", kGpt2},
    {"granite-docling", kGpt2},
    {"gigachat", kGpt2},
    {"exaone4", kGpt2},
    {"modern-bert", kGpt2},
    {"jina-es", kGpt2},
    {"jina-de", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v2-de", kGpt2},
    {"jina-v1-en", kGpt2},
    {"jina-v2-code", kGpt2},
    {"roberta-bpe", kGpt2},
    {"starcoder", kDigits},
    {"refact", kDigits},
    {"command-r", kDigits},
    {"smollm", kDigits},
    {"codeshell", kDigits},
    {"exaone", kDigits},
    {"minerva-7b", kDigits},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama-bpe", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"glm4", kLlama3, true},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"megrez", kQwen2},
    {"grok-2", kQwen2},
    {"qwen35", kQwen35},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"minimax-m2", kGpt4o},
    {"deepseek-v3", kDeepseek3},
    {"hunyuan-dense", kDeepseek3},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"falcon", kFalcon},
    {"poro-chat", kBloom},
    {"bloom", kBloom},
    {"gpt3-finnish", kBloom},
    {"viking", kViking},
    {"gemma4", kLineRuns, false, false, false},
};

}  // namespace

std::span<const GgufPreTokenizer> gguf_pre_tokenizers() { return kPreTokenizers; }

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const GgufPreTokenizer& p : kPreTokenizers)
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace rlx
