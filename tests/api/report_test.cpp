// tandem report: one well-formed page that loads nothing, whatever runs contain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/commands/report/axis.h"
#include "api/commands/report/chart.h"
#include "api/commands/report/html.h"
#include "api/program/runs.h"
#include "tests/api/error_of.h"
#include "tests/api/html_check.h"
#include "tests/api/made_up_runs.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using tandem::testing::html_mistake;
using tandem::testing::MadeUpRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::vector<std::string> labels_of(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

class ReportTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const MadeUpRun& run = {}) {
    const std::string path = folder_ / name;
    run.write(path);
    return path;
  }
  /// The page of these runs, checked to be well formed.
  std::string page(const std::vector<std::string>& runs) {
    const std::string to = folder_ / "report.html";
    write_report(runs, to);
    const std::string text = read_file(to);
    EXPECT_EQ(html_mistake(text), "");
    EXPECT_THAT(text, Not(HasSubstr("http://")));
    EXPECT_THAT(text, Not(HasSubstr("https://")));
    EXPECT_THAT(text, Not(HasSubstr("src=\"")));
    return text;
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST(HtmlCheck, FindsMistakes) {
  const auto mistake = [](const std::string& body) {
    return html_mistake("<!DOCTYPE html><p>" + body + "</p>");
  };
  EXPECT_EQ(mistake("a &lt; <b class=\"x\">b</b><br>"), "");
  for (const char* bad : {"<b>", "</b>", "a < b", "a & b", "<b x='1'></b>", "<b><i></b></i>",
                          "a > b", "<b title=\"></b>", "<script>1"})
    EXPECT_NE(mistake(bad), "") << bad;
}

TEST(Html, TextsCannotBecomeMarkup) {
  EXPECT_EQ(html("<script>alert('x') & \"y\"</script>"),
            "&lt;script&gt;alert(&#39;x&#39;) &amp; &quot;y&quot;&lt;/script&gt;");
  EXPECT_EQ(html("gr\xc3\xb6\xc3\x9f"
                 "e \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xb6\xc3\x9f"
            "e \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string lost = "\xEF\xBF\xBD";
  EXPECT_EQ(html("a\xff"
                 "b\x1b\xc3"),
            "a" + lost + "b" + lost + lost);
  EXPECT_EQ(html("\xed\xa0\x80"), lost + lost + lost);  // half of a pair of UTF-16
  EXPECT_EQ(html("\xc0\xaf"), lost + lost);             // a slash in too many bytes
  EXPECT_EQ(script_text("</script>\"\\\n"), "\"\\u003c/script\\u003e\\\"\\\\\\u000a\"");
  EXPECT_EQ(Json::parse(script_text("a<b>&\"\\\n\t")), "a<b>&\"\\\n\t");
  EXPECT_EQ(script_number(std::nan("")), "null");
  EXPECT_EQ(script_number(12345678), "12345678");
  EXPECT_EQ(script_number(1.0 / 3), "0.3333333");
}

TEST(Html, NumbersAreWrittenAsPeopleDo) {
  EXPECT_EQ(number_text(1234567), "1,234,567");
  EXPECT_EQ(number_text(-1234), "-1,234");
  EXPECT_EQ(number_text(999), "999");
  EXPECT_EQ(number_text(0.0123456), "0.01235");
  EXPECT_EQ(number_text(98765.4), "98,765");
  EXPECT_EQ(number_text(std::nan("")), "nan");
  EXPECT_EQ(bytes_text_of(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text_of(200.0 * (1 << 20)), "200 MiB");
  EXPECT_EQ(duration_text(3661), "1 h 01 min");
}

TEST(Axis, TicksAreRoundNumbers) {
  EXPECT_THAT(labels_of(Axis(0.12, 0.93)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels_of(Axis(0, 2300)),
              ElementsAre("0", "500", "1,000", "1,500", "2,000", "2,500"));
  EXPECT_THAT(labels_of(Axis(1, 900, AxisKind::steps)), ElementsAre("200", "400", "600", "800"));
  EXPECT_THAT(labels_of(Axis(1, 3, AxisKind::steps)), ElementsAre("1", "2", "3"));
  EXPECT_THAT(labels_of(Axis(0, 70000, AxisKind::steps)), ElementsAre("0", "20k", "40k", "60k"));
  EXPECT_THAT(labels_of(Axis(3e-4, 2, AxisKind::logarithmic)),
              ElementsAre("1e-4", "0.001", "0.01", "0.1", "1", "10"));
  EXPECT_THAT(labels_of(Axis(0, 3.0 * (1 << 20), AxisKind::bytes)),
              ElementsAre("0 B", "1.0 MiB", "2.0 MiB", "3.0 MiB"));
  const Axis steps(100, 300, AxisKind::steps);
  EXPECT_EQ(steps.at(100), 0);
  EXPECT_EQ(steps.at(200), 0.5);
  EXPECT_NEAR(Axis(1, 100, AxisKind::logarithmic).at(10), 0.5, 1e-12);
}

TEST(Axis, AnyRangeHasTicksWithinIt) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<double, double> ranges[] = {
      {0, 0},           {5, 5},        {-3, -3}, {1e17, 1e17 + 64}, {-1e300, 1e300},
      {1e-300, 2e-300}, {0, infinity}, {-1, 1},  {0, 5e-324},       {5e-324, 1}};
  for (const auto& [least, greatest] : ranges) {
    for (const AxisKind kind :
         {AxisKind::linear, AxisKind::logarithmic, AxisKind::bytes, AxisKind::steps}) {
      const Axis axis(least, greatest, kind);
      EXPECT_LE(axis.ticks().size(), 21u) << least << " " << greatest;
      for (const Tick& tick : axis.ticks()) {
        EXPECT_GE(tick.at, -1e-6) << least << " " << greatest << " " << tick.label;
        EXPECT_LE(tick.at, 1 + 1e-6) << least << " " << greatest << " " << tick.label;
      }
    }
  }
}

TEST(Chart, LongLinesAreThinnedWithoutLosingPeaks) {
  ChartLine line;
  for (int i = 0; i < 100000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 54321 ? 100 : i == 777 ? -100 : std::sin(i / 900.0));
  }
  const ChartLine thin = thinned(line, 600);
  EXPECT_LE(thin.x.size(), 600u);
  EXPECT_GT(thin.x.size(), 300u);
  EXPECT_EQ(*std::max_element(thin.y.begin(), thin.y.end()), 100);
  EXPECT_EQ(*std::min_element(thin.y.begin(), thin.y.end()), -100);
  EXPECT_TRUE(std::is_sorted(thin.x.begin(), thin.x.end()));
  EXPECT_EQ(thinned(thin, 600).x, thin.x);
}

TEST(Chart, ValuesThatAreNotFiniteAreGaps) {
  Chart chart{.title = "Loss"};
  chart.lines.push_back({"run", 0, false, {1, 2, 3, 4}, {1, std::nan(""), 2, 3}});
  const std::string text = line_chart(chart, 1);
  const std::size_t path = text.find("class=\"line");
  const std::string line = text.substr(path, text.find('>', path) - path);
  EXPECT_EQ(std::count(line.begin(), line.end(), 'M'), 2);
  EXPECT_THAT(text, HasSubstr("1 not finite"));
  EXPECT_THAT(text, HasSubstr("\"y\":[1,null,2,3]"));
  chart.lines[0].y = {NAN, NAN, NAN, NAN};
  EXPECT_EQ(line_chart(chart, 1), "");
}

TEST_F(ReportTest, APageOfOneRunHasItsCurvesAndNumbers) {
  const std::string text = page({put("small-0001")});
  for (const char* part : {"<title>small-0001</title>", "<h3>Loss</h3>", "<h3>accuracy</h3>",
                           "Learning rate", "per second", "0.875", "small net.onnx", "optimizer.lr",
                           "tandem bench", "Content-Security-Policy", "width=device-width",
                           "prefers-color-scheme: dark", "role=\"img\"", "lang=\"en\""})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(ReportTest, SeveralRunsLieOverEachOther) {
  MadeUpRun other;
  other.config.replace(other.config.find("lr = 0.01"), 9, "lr = 0.02");
  const std::string text = page({put("a"), put("b", other)});
  EXPECT_THAT(text, HasSubstr("a, held out"));
  EXPECT_THAT(text, HasSubstr("b, held out"));
  EXPECT_THAT(text, HasSubstr("data-run=\"1\" checked"));
  EXPECT_THAT(text, HasSubstr("Keys in which the runs differ."));
  EXPECT_THAT(text, Not(HasSubstr("<code>batch_size</code>")));
  // Runs of the same name are labelled by their paths.
  EXPECT_THAT(page({put("x/run"), put("y/run")}), HasSubstr(folder_ / "y/run, training"));
}

TEST_F(ReportTest, HostileNamesStayTexts) {
  const std::string evil = "<script>alert(1)</script>\"'&";
  MadeUpRun run;
  run.metrics = "{\"step\":1,\"loss\":1,\"" + std::string("<img src=x onerror=alert(1)>") +
                "\":1,\"norm.gradient.</script><b>\":2}\n{\"phase\":\"eval\",\"step\":1,"
                "\"f1\":{\"<b>cat\":0.5,\"\\u0000\":1},\"confusion\":[[1,2],[3,4]]}\n";
  run.config = "model = \"/<b>x.onnx\"\n\"<i>key\" = \"</script><script>alert(2)</script>\"\n";
  std::string name = evil;
  std::replace(name.begin(), name.end(), '/', '|');
  const std::string path = put(name, run);
  write_file(
      path + "/plan.json",
      R"({"launches":4,"phases":[{"phase":"<u>","from":2}],"devices":[{"name":"<s>cpu","parameters":9,)"
      R"("state":0,"peak":99,"at":[0,1],"gradients":[1,"x"],"activations":[2],"workspace":null,)"
      R"("paths":["</script><script>alert(3)</script>",7]}],"copies":[{"value":"<em>","bytes":"many"}]})");
  write_file(
      path + "/placement.json",
      R"({"devices":["<s>cpu",3],"nodes":[{"path":"a","device":"<s>cpu","phase":"forward","kernel":"<k>"}],"uses":[]})");
  write_file(path + "/operators.json",
             R"({"step":1,"operators":[{"path":"<p>.x","op":"<op>","ms":2.5},{"ms":"x"},7]})");
  const std::string text = page({path, put("other")});  // well formed
  for (const char* loose :
       {"<script>alert", "<img", "<b>x", "<i>key", "<s>cpu", "<em>", "<op>", "<u>"})
    EXPECT_THAT(text, Not(HasSubstr(loose))) << loose;
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;alert(1)"));
}

TEST_F(ReportTest, FilesOfOtherFormsAreLeftOut) {
  for (const char* content :
       {"", "[]", "{", "3", "{\"devices\":3,\"operators\":{},\"copies\":\"x\"}",
        "{\"devices\":[1,[],{}],\"operators\":[1],\"nodes\":[[]]}"}) {
    const std::string path = put("run");
    for (const char* file :
         {"/plan.json", "/placement.json", "/operators.json", "/bench.json", "/summary.json"})
      write_file(path + file, content);
    EXPECT_THAT(page({path}), HasSubstr("Loss")) << content;
    fs::remove_all(path);
  }
}

TEST_F(ReportTest, EmptyAndTornRunsHaveAPageToo) {
  MadeUpRun empty;
  empty.metrics = "";
  empty.config = "steps = 1\n";
  EXPECT_THAT(page({put("empty", empty)}), HasSubstr("No step has been logged yet."));
  MadeUpRun torn;
  torn.metrics += "{\"step\":150,\"loss\":0.";
  EXPECT_THAT(page({put("torn", torn)}), HasSubstr("1 line of metrics.jsonl cannot be read"));
}

TEST_F(ReportTest, HugeRunsBecomeSmallPages) {
  MadeUpRun huge;
  huge.metrics.clear();
  for (int i = 1; i <= 60000; ++i)
    huge.metrics +=
        "{\"step\":" + std::to_string(i) + ",\"loss\":" + std::to_string(1.0 / i) + "}\n";
  EXPECT_LT(page({put("huge", huge)}).size(), 120000u);
}

TEST_F(ReportTest, MemoryTimesAndClassesAreDrawn) {
  MadeUpRun run;
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    std::string row;
    for (int j = 0; j < 40; ++j)
      row += (j > 0 ? "," : "") + std::to_string(i == j ? 50 : i == 3 && j == 5 ? 9 : 0);
    rows += (i > 0 ? ",[" : "[") + row + "]";
  }
  run.metrics += "{\"phase\":\"eval\",\"step\":101,\"loss\":1,\"small\":[[8,2],[1,9]],\"large\":[" +
                 rows + "],\"f1\":{\"cat\":0.5,\"dog\":\"nan\"}}\n";
  const std::string path = put("run", run);
  write_file(
      path + "/plan.json",
      R"({"launches":6,"phases":[{"phase":"forward","from":0},{"phase":"backward","from":3}],)"
      R"("devices":[{"name":"cpu","parameters":1048576,"state":2097152,"peak":4194304,"at":[0,2,4],)"
      R"("gradients":[0,0,1048576],"activations":[4096,8192,0],"workspace":[0,0,0],"paths":["a","b","c"]}],)"
      R"("copies":[{"value":"x","from":"cpu","to":"gpu","phase":"forward","bytes":2048}]})");
  write_file(
      path + "/placement.json",
      R"({"devices":["cpu","gpu"],"uses":{"gpu":"emulated:0"},"nodes":[{"path":"fc1.Gemm","device":"gpu",)"
      R"("phase":"forward","kernel":"x"}],"fell_back":[{"path":"norm","attribute":"run","requested":"gpu",)"
      R"("actual":"cpu","reason":"no kernel"}]})");
  write_file(
      path + "/bench.json",
      R"({"operators":[{"path":"blocks.0.fc.Gemm","op":"MatMul","phase":"forward","device":"cpu","ms":3},)"
      R"({"path":"blocks.1.fc.Gemm","op":"MatMul","phase":"backward","device":"cpu","ms":1},)"
      R"({"path":"optimizer","op":"AdamUpdate","phase":"update","device":"cpu","ms":1}]})");
  const std::string text = page({path});
  for (const char* part :
       {"optimizer state", "forward from 0 on, backward from 3 on", "emulated:0",
        "1 copy between devices, 2.0 KiB by the plan", "Not where the policy prefers them",
        "5 ms in all operators of a step, measured by tandem bench", "80 %",
        "40 classes: the mistakes that are made most often", "style=\"--part:0.800\"", "blocks.0",
        "updates"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(ReportTest, AFileThatIsNoReportStays) {
  const std::string run = put("run");
  write_file(folder_ / "notes.html", "<p>mine</p>");
  EXPECT_THAT(error_of([&] { write_report({run}, folder_ / "notes.html"); }), HasSubstr("--to"));
  EXPECT_EQ(read_file(folder_ / "notes.html"), "<p>mine</p>");
  EXPECT_THAT(error_of([&] {
                write_report({run, folder_ / "none"}, folder_ / "r.html");
              }),
              HasSubstr("this is no run directory"));
  EXPECT_THAT(error_of([&] { write_report({}, folder_ / "r.html"); }), HasSubstr("of which runs?"));
  EXPECT_FALSE(fs::exists(folder_ / "r.html"));
}

}  // namespace
}  // namespace tandem::api
