"""The words of a text, in languages with and without spaces between them."""
# ruff: noqa: RUF001 - letters of other scripts are what is tested

import pytest

from prism.agents import SocialAgent
from prism.agents.words import keywords_of, telling_words, words_of

# a persona, a post on its subject, and one on cooking
LANGUAGES = {
    "Chinese": (
        "我每个周末都踢足球，也看比赛。",
        "昨晚那场足球赛太精彩了。",
        "今天的菜谱：慢炖牛肉汤。",
    ),
    "Japanese": (
        "週末はいつもサッカーの試合を見ます。",
        "昨日のサッカーは最高だった。",
        "新しいレシピ：野菜スープ。",
    ),
    "Korean": (
        "주말마다 축구를 보고 경기장에 갑니다.",
        "어제 축구 경기는 최고였다.",
        "오늘의 요리: 된장찌개.",
    ),
    "Thai": (
        "ฉันชอบดูฟุตบอลทุกวันหยุด",
        "เมื่อคืนทีมฟุตบอลชนะ",
        "เมนูใหม่วันนี้คือแกงเขียวหวาน",
    ),
    "Hindi": (
        "मैं हर रविवार फुटबॉल खेलता हूँ।",
        "कल का फुटबॉल मैच शानदार था।",
        "दाल बनाने की आसान विधि।",
    ),
    "Bengali": (
        "আমি প্রতি রবিবার ফুটবল খেলি।",
        "গতকালের ফুটবল ম্যাচ দারুণ ছিল।",
        "ডাল রান্নার সহজ উপায়।",
    ),
    "Arabic": (
        "أشاهد مباريات برشلونة كل أسبوع",
        "فازت برشلونة أمس",
        "طريقة طبخ الأرز",
    ),
    "Russian": (
        "Каждые выходные смотрю футбол.",
        "Вчера был отличный футбол!",
        "Новый рецепт борща.",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_post_on_its_subject_is_relevant_to_a_persona(language: str) -> None:
    """The words of a persona rate a post on its subject above one on another, in any script."""
    persona, on_subject, on_cooking = LANGUAGES[language]
    fan = SocialAgent("fan", interests=keywords_of(persona))
    assert fan.relevance({"text": on_subject}) > fan.relevance({"text": on_cooking})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words, two_words; R2D2!", ["two", "words", "two", "words", "r2d2"]),
        ("Café STRASSE straße", ["cafe", "strasse", "strasse"]),
        ("हूँ और", ["हूँ", "और"]),
        ("足球", ["足", "足球", "球"]),
        ("AI技术", ["ai", "技", "技术", "术"]),
        ("ｶﾞｽ", ["ガ", "ガス", "ス"]),
        ("ทีม", ["ที", "ทีม", "ม"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("葛\U000e0100飾", ["葛", "葛飾", "飾"]),
        ("❤\ufe0f — 👩🏻\u200d💻", []),
    ],
)
def test_words_are_those_of_the_script(text: str, words: list[str]) -> None:
    """Words have no case and no accents; letters without spaces stand alone and in pairs."""
    assert words_of(text) == words


def test_telling_words_leave_out_short_words() -> None:
    """A word of one or two letters says nothing about a subject; a pair without spaces does."""
    assert telling_words("It is an ox in 足球 é") == {"足球"}


def test_keywords_are_frequent_and_long() -> None:
    """Keywords are the most frequent words of five letters or more, without very common ones."""
    text = "Bread and bread, flour5flour, about about about rolls tea 我踢足球"
    assert keywords_of(text) == ["bread", "flour", "rolls", "我踢足球"]
