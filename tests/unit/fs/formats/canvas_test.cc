#include "fs/formats/canvas.h"

#include <string>

#include <gtest/gtest.h>

namespace batchfs {
namespace canvas_test {

/// '#' for every colour but 0.
std::string shown(const Canvas& canvas) {
  std::string text;
  for (std::int64_t y = 0; y < canvas.height(); ++y) {
    for (std::int64_t x = 0; x < canvas.width(); ++x) text += canvas.at(x, y) != 0 ? '#' : '.';
    text += '\n';
  }
  return text;
}

TEST(Canvas, WritesLetters) {
  Canvas canvas(11, 9);
  canvas.write(0, 0, "Tp", 3);
  EXPECT_EQ(shown(canvas),
            "#####......\n"
            "#.#.#......\n"
            "..#...#.##.\n"
            "..#...##..#\n"
            "..#...##..#\n"
            "..#...#.##.\n"
            "..#...#....\n"
            "......#....\n"
            "...........\n");
  EXPECT_EQ(canvas.at(0, 0), 3u);
}

TEST(Canvas, EveryPrintableCharacterHasItsOwnShape) {
  std::string shapes;
  for (char letter = '!'; letter <= '~'; ++letter) {
    Canvas canvas(5, 8);
    canvas.write(0, 0, std::string(1, letter), 1);
    const std::string shape = shown(canvas);
    EXPECT_NE(shape.find('#'), std::string::npos) << letter;
    EXPECT_EQ(shapes.find(shape + "|"), std::string::npos) << letter;
    shapes += shape + "|";
  }
}

TEST(Canvas, OtherCharactersAreQuestionMarksOneEach) {
  Canvas other(30, 8), marks(30, 8);
  other.write(0, 0, "a\xc2\xb0\xe6\xb0\xb4\n!", 1);
  marks.write(0, 0,
              "a??"
              "?!",
              1);
  EXPECT_EQ(shown(other), shown(marks));
}

TEST(Canvas, WhatIsOutsideIsLeftOut) {
  Canvas canvas(4, 3);
  canvas.fill(2, 1, 10, 10, 5);
  canvas.fill(-3, -3, 4, 4, 6);
  canvas.set(-1, 0, 7);
  canvas.set(0, 3, 7);
  canvas.write(-2, -2, "WWW", 8);
  canvas.write(100, 100, "W", 8);
  EXPECT_EQ(canvas.at(3, 2), 5u);
  EXPECT_EQ(canvas.pixels().size(), 12u);
}

}  // namespace canvas_test
}  // namespace batchfs
