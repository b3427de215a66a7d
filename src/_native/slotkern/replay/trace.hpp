// Parses workload traces: lines of numbers and words, read in chunks, into rows of 8-byte cells.
//
// A format string gives the type of each field: integer, number, or word. Words are encoded as
// dictionary codes, numbered by their first occurrence in the field of a valid line; the word "-1"
// means unknown and gets the code -1.
// Numbers are decimal, at most 2^53 in size, and correctly rounded. Any other text in a field is an
// error that names line, field and text. A line that begins with the comment character is kept
// verbatim; the rest of a job's line from that character on is ignored.
//
// Cost: one pass over the text; memory: 8 bytes for each field, 8 for each row, and the comments. A
// line has at most kMaxLineLength characters, so input without line ends cannot exhaust memory.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "slotkern/base/status.hpp"

namespace slotkern::replay {

// The type of a field, as a character of the format string.
enum class FieldType : char { integer = 'i', number = 'f', word = 's' };

// An 8-byte cell: a number field uses `number`, all others `integer`.
union FieldValue {
  std::int64_t integer;
  double number;
};

// The reason why a line was rejected.
enum class LineFault : int { none = 0, too_long, field_count, not_number, not_integer, too_large };

// A rejected line; `text` has at most 80 bytes of the field.
struct BadLine {
  LineFault fault = LineFault::none;
  std::uint64_t line = 0;
  std::size_t field = 0;  // index of the field; for field_count: the number of fields
  std::string text;
};

namespace detail {

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

inline constexpr double kPowersOfTen[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// Parses all of [p, end) as [+-] digits [. digits] [e [+-] digits].
inline LineFault parse_number(const char* p, const char* end, double& out) {
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const first = p;
  std::uint64_t digits = 0;
  int count = 0, behind = 0;
  const auto read = [&] {
    const char* from = p;
    for (unsigned c; p < end && (c = static_cast<unsigned>(*p - '0')) < 10; ++p)
      digits = digits * 10 + c;
    return static_cast<int>(std::min<std::ptrdiff_t>(p - from, 100));
  };
  count = read();
  if (p < end && *p == '.') {
    ++p;
    count += behind = read();
  }
  if (!count) return LineFault::not_number;
  if (p == end && count <= 15) {  // both operands are exact, so one division rounds correctly
    const double whole = static_cast<double>(digits) / kPowersOfTen[behind];
    out = negative ? -whole : whole;
    return LineFault::none;
  }
  if (p < end) {  // an exponent, or no number
    if (*p != 'e' && *p != 'E') return LineFault::not_number;
    const char* q = p + 1;
    if (q < end && (*q == '-' || *q == '+')) ++q;
    if (q == end) return LineFault::not_number;
    for (; q < end; ++q)
      if (*q < '0' || *q > '9') return LineFault::not_number;
  }
  double size = 0;
  const auto [stop, error] = std::from_chars(first, end, size);
  if (error == std::errc::result_out_of_range) return LineFault::too_large;
  if (error != std::errc() || stop != end) return LineFault::not_number;
  out = negative ? -size : size;
  return size <= 9007199254740992.0 ? LineFault::none : LineFault::too_large;
}

}  // namespace detail

// An incremental parser of one trace.
class TraceParser {
 public:
  static constexpr std::size_t kMaxLineLength = 1 << 16;
  static constexpr std::size_t kMaxReported = 8;  // skipped lines that are reported

  static constexpr std::size_t kMaxExtraFields = 64;  // fields beyond the format

  // With `extra`, lines may have fields beyond the format, as many as the header names: in comments
  // such as "; 18: used_GPUs" (index of the field, from 0) or in a first line of names. They are
  // encoded as words.
  TraceParser(std::string_view format, char comment, bool skip, bool extra)
      : format_(format), comment_(comment), skip_(skip), has_extra_(extra), words_(format.size()) {}

  // Parses a chunk. Returns line_not_valid at an invalid line, unless invalid lines are skipped.
  Status feed(const char* data, std::size_t size) noexcept {
    return guarded([&] { return parse(data, size) ? Status::ok : Status::line_not_valid; });
  }

  // Parses the last line.
  Status finish() noexcept {
    return guarded([&] {
      const bool good =
          partial_line_.empty() ||
          parse_line(partial_line_.data(), partial_line_.data() + partial_line_.size());
      partial_line_.clear();
      return good ? Status::ok : Status::line_not_valid;
    });
  }

  std::size_t rows() const { return cells_.size() / format_.size(); }
  const FieldValue* cells() const { return cells_.data(); }
  std::uint64_t skipped() const { return skipped_; }
  const std::vector<BadLine>& bad_lines() const { return bad_; }
  const std::string& comments() const { return comments_; }
  const std::vector<std::string>& words(std::size_t field) const { return words_[field].list; }
  std::uint64_t line_of(std::size_t row) const { return lines_[row]; }
  std::size_t extra() const { return extra_; }
  // The codes of the extra fields, row by row.
  const std::vector<std::int64_t>& extra_codes() const { return extra_codes_; }
  const std::vector<std::string>& extra_words(std::size_t k) const {
    return words_[format_.size() + k].list;
  }
  const std::string& names() const { return names_; }  // the header line, or empty

 private:
  // The dictionary of a field: codes by word, and words by code.
  struct Words {
    std::vector<std::string> list;
    std::unordered_map<std::string, std::int64_t> code;
  };
  // A word of the current line, not yet encoded.
  struct Word {
    std::size_t field;
    std::string_view text;
  };

  // Parses a chunk; returns false at an invalid line that is not skipped.
  bool parse(const char* data, std::size_t size) {
    const char *p = data, *const end = data + size;
    while (p < end) {
      const auto* stop = static_cast<const char*>(std::memchr(p, '\n', end - p));
      if (!stop) {
        partial_line_.append(p, std::min<std::size_t>(end - p, kMaxLineLength + 1));
        if (partial_line_.size() <= kMaxLineLength) return true;
        return report_fault(LineFault::too_long, 0, {}, line_ + 1);
      }
      if (partial_line_.empty()) {
        if (!parse_line(p, stop)) return false;
      } else {
        partial_line_.append(p, stop);
        if (!parse_line(partial_line_.data(), partial_line_.data() + partial_line_.size()))
          return false;
        partial_line_.clear();
      }
      p = stop + 1;
    }
    return true;
  }

  // Parses one line; returns false if it is invalid and not skipped.
  bool parse_line(const char* p, const char* end) {
    ++line_;
    while (p < end && detail::is_blank(*p)) ++p;
    if (p == end) return true;
    if (*p == comment_) {
      comments_.append(p, end).push_back('\n');
      return true;
    }
    if (static_cast<std::size_t>(end - p) > kMaxLineLength)
      return report_fault(LineFault::too_long, 0, {}, line_);
    const std::size_t row = cells_.size(), fields = format_.size();
    if (has_extra_ && lines_.empty() && names_.empty() && is_header(p, end)) {
      names_.assign(p, end);
      return true;
    }
    if (has_extra_ && lines_.empty() && extra_ == 0) {
      extra_ = count_extra_fields();
      words_.resize(fields + extra_);
    }
    cells_.resize(row + fields);
    line_words_.clear();
    std::size_t k = 0;
    while (p < end && *p != comment_) {
      const char* const first = p;
      while (p < end && !detail::is_blank(*p) && *p != comment_) ++p;
      if (k < fields)
        if (const LineFault fault = read(k, first, p, cells_[row + k]); fault != LineFault::none) {
          const std::size_t count = count_fields(first, end, k);
          cells_.resize(row);
          return count == fields + extra_
                     ? report_fault(fault, k, {first, p}, line_)
                     : report_fault(LineFault::field_count, count, {}, line_);
        }
      if (k >= fields && k < fields + extra_)
        line_words_.push_back({k, {first, p}});
      ++k;
      while (p < end && detail::is_blank(*p)) ++p;
    }
    if (k == fields + extra_) {
      for (const Word& word : line_words_)
        if (word.field < fields)
          cells_[row + word.field].integer = code_of(words_[word.field], word.text);
        else
          extra_codes_.push_back(intern(words_[word.field], word.text));
      lines_.push_back(line_);
      return true;
    }
    cells_.resize(row);
    return report_fault(LineFault::field_count, k, {}, line_);
  }

  // Returns the number of fields of a line, given that `before` of them precede p.
  std::size_t count_fields(const char* p, const char* end, std::size_t before) const {
    while (p < end && *p != comment_) {
      while (p < end && !detail::is_blank(*p) && *p != comment_) ++p;
      while (p < end && detail::is_blank(*p)) ++p;
      ++before;
    }
    return before;
  }

  // Parses field k of the format; a word is kept in line_words_.
  LineFault read(std::size_t k, const char* first, const char* end, FieldValue& out) {
    const auto kind = static_cast<FieldType>(format_[k]);
    if (kind == FieldType::word) {  // encoded once the whole line is valid
      line_words_.push_back({k, {first, end}});
      return LineFault::none;
    }
    double x = 0;
    if (const LineFault fault = detail::parse_number(first, end, x); fault != LineFault::none)
      return fault;
    if (kind == FieldType::number)
      out.number = x;
    else if (x == std::floor(x))
      out.integer = static_cast<std::int64_t>(x);
    else
      return LineFault::not_integer;
    return LineFault::none;
  }

  // Returns true for a header line: no fewer fields than the format has, and none a number.
  bool is_header(const char* p, const char* end) const {
    std::size_t count = 0;
    while (p < end && *p != comment_) {
      if (!std::isalpha(static_cast<unsigned char>(*p)) && *p != '_') return false;
      while (p < end && !detail::is_blank(*p) && *p != comment_) ++p;
      while (p < end && detail::is_blank(*p)) ++p;
      ++count;
    }
    return count >= format_.size();
  }

  // Returns the number of consecutive fields beyond the format that the header names.
  std::size_t count_extra_fields() const {
    const std::size_t fields = format_.size();
    std::vector<bool> named(kMaxExtraFields);
    std::size_t count = 0;
    for (std::size_t p = 0; (p = names_.find_first_not_of(" \t\r", p)) != std::string::npos;
         p = std::min(names_.find_first_of(" \t\r", p), names_.size()), ++count)
      if (count >= fields && count < fields + kMaxExtraFields) named[count - fields] = true;
    for (std::size_t p = 0; p < comments_.size(); p = comments_.find('\n', p) + 1) {
      std::size_t q = comments_.find_first_not_of(";# \t", p), number = 0;
      if (q == std::string::npos) break;
      const std::size_t digits = q;
      while (q < comments_.size() && q < digits + 4 &&
             std::isdigit(static_cast<unsigned char>(comments_[q])))
        number = 10 * number + static_cast<std::size_t>(comments_[q++] - '0');
      q = comments_.find_first_not_of(" \t", q);
      if (q != std::string::npos && comments_[q] == ':' && q > digits && number >= fields &&
          number < fields + kMaxExtraFields)
        named[number - fields] = true;
    }
    return static_cast<std::size_t>(std::find(named.begin(), named.end(), false) - named.begin());
  }

  static std::int64_t code_of(Words& words, std::string_view word) {
    return word == "-1" ? -1 : intern(words, word);
  }

  static std::int64_t intern(Words& words, std::string_view word) {
    const auto [at, fresh] = words.code.try_emplace(std::string(word), words.list.size());
    if (fresh) words.list.emplace_back(word);
    return at->second;
  }

  // Records an invalid line; returns true if it is skipped.
  bool report_fault(LineFault fault, std::size_t field, std::string_view text, std::uint64_t line) {
    // A line that is too long cannot be skipped, because its end was not read.
    const bool go_on = skip_ && fault != LineFault::too_long;
    skipped_ += go_on;
    if (!go_on) bad_.clear();
    if (bad_.size() < kMaxReported)
      bad_.push_back({fault, line, field, std::string(text.substr(0, 80))});
    return go_on;
  }

  std::string format_;
  char comment_;
  bool skip_, has_extra_;
  std::size_t extra_ = 0;  // number of fields beyond the format
  std::vector<std::int64_t> extra_codes_;
  std::string names_;
  std::vector<FieldValue> cells_;
  std::vector<Words> words_;
  std::vector<Word> line_words_;         // words of the current line
  std::string partial_line_, comments_;  // unfinished line of the last chunk; all comment lines
  std::vector<std::uint64_t> lines_;     // line number of each row
  std::uint64_t line_ = 0, skipped_ = 0;
  std::vector<BadLine> bad_;
};

// Appends one line for each row: numbers in the shortest form that parses to the same value,
// integral ones without a decimal point; words as their codes.
inline Status write_rows(std::string_view format, const FieldValue* cells, std::size_t rows,
                         std::string& out) noexcept {
  return guarded([&] {
    char text[32];
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t k = 0; k < format.size(); ++k, ++cells) {
        const bool whole = static_cast<FieldType>(format[k]) != FieldType::number ||
                           (std::abs(cells->number) < 1e15 &&
                            cells->number == std::floor(cells->number) &&
                            !(cells->number == 0 && std::signbit(cells->number)));
        const std::int64_t integer = static_cast<FieldType>(format[k]) != FieldType::number
                                         ? cells->integer
                                     : whole ? static_cast<std::int64_t>(cells->number)
                                             : 0;
        const auto end = whole ? std::to_chars(text, text + sizeof text, integer).ptr
                               : std::to_chars(text, text + sizeof text, cells->number).ptr;
        out.append(text, end);
        out.push_back(k + 1 < format.size() ? ' ' : '\n');
      }
    return Status::ok;
  });
}

}  // namespace slotkern::replay
