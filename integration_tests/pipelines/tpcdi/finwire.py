"""Companies, securities and quarterly figures as lines of fixed width, as a news wire sends them."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field

from integration_tests.pipelines.tpcdi.references import INDUSTRIES, LAST_LOADED

_RATINGS = ("AAA", "AA", "A+", "A", "BBB", "BB+", "B", "CCC", "D")
_FIRST_QUARTER = (2015, 1)


@dataclass
class Company:
    """As it is now."""

    number: int
    name: str
    rating: str
    industry: str
    chief: str
    city: str


@dataclass
class Security:
    """As it is now; `company`: a number."""

    symbol: str
    company: int
    name: str
    dividend: float
    since: dt.date


@dataclass
class Wire:
    """`lines`: what was not fetched yet."""

    rng: random.Random
    companies: dict[int, Company] = field(default_factory=dict)
    securities: dict[str, Security] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _quarter: tuple[int, int] = _FIRST_QUARTER  # the next one to be sent

    def begin(self, companies: int, securities: int) -> None:
        """Companies of 2014, their securities of 2015, some changes, and figures of all quarters until LAST_LOADED."""
        for number in range(1, companies + 1):
            self._company(number, dt.date(2014, 6, 30) + dt.timedelta(days=self.rng.randrange(150)))
        for number in range(1, securities + 1):
            day = dt.date(2015, 1, 5) + dt.timedelta(days=self.rng.randrange(200))
            self._security(number, self.rng.randint(1, companies), day)
        moments = [(quarter_end, self.send_quarters, None) for quarter_end in _quarter_ends(LAST_LOADED)]
        later = dt.date(2016, 2, 1)
        for at, number in enumerate(self.rng.sample(sorted(self.companies), companies // 5)):
            moments.append((later + dt.timedelta(days=at % 300), self.change_company, number))
        for at, symbol in enumerate(self.rng.sample(sorted(self.securities), securities // 5)):
            moments.append((later + dt.timedelta(days=at % 300), self.change_security, symbol))
        for day, send, of in sorted(moments, key=lambda one: one[0]):  # a name is the one of that day
            send(day) if of is None else send(of, day)

    def day(self, day: dt.date) -> None:
        """At times a changed company or security, or a new one of both; figures when a quarter has ended."""
        if self.rng.random() < 0.5:
            self.change_company(self.rng.choice(sorted(self.companies)), day)
        if self.rng.random() < 0.5:
            self.change_security(self.rng.choice(sorted(self.securities)), day)
        if self.rng.random() < 0.1:
            number = len(self.companies) + 1
            self._company(number, day)
            self._security(len(self.securities) + 1, number, day)
        self.send_quarters(day)

    def fetch(self) -> list[str]:
        """The lines since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def _company(self, number: int, day: dt.date) -> None:
        rng = self.rng
        self.companies[number] = Company(
            number, f"Company {number} of {rng.choice('ABCDEFGH')}", rng.choice(_RATINGS), rng.choice(INDUSTRIES),
            f"Chief {rng.randrange(1000)}", f"City {rng.randrange(50)}",
        )  # fmt: skip
        self._send_company(number, day)

    def _security(self, number: int, company: int, day: dt.date) -> None:
        symbol = f"S{number:05d}"
        self.securities[symbol] = Security(
            symbol, company, f"Share {number}", self.rng.randrange(1, 400) / 100, day
        )
        self._send_security(symbol, day)

    def change_company(self, number: int, day: dt.date) -> None:
        """Another rating and chief, at times another name."""
        one = self.companies[number]
        one.rating, one.chief = self.rng.choice(_RATINGS), f"Chief {self.rng.randrange(1000)}"
        if self.rng.random() < 0.2:
            one.name = f"Company {number} of {day:%Y%m%d}"
        self._send_company(number, day)

    def change_security(self, symbol: str, day: dt.date) -> None:
        """Another dividend."""
        self.securities[symbol].dividend = self.rng.randrange(1, 400) / 100
        self._send_security(symbol, day)

    def send_quarters(self, day: dt.date) -> None:
        """Figures of the quarters that ended before `day`, of each company."""
        while (self._quarter[0], self._quarter[1] * 3) < (day.year, day.month):
            year, quarter = self._quarter
            for number in sorted(self.companies):
                self._send_figures(number, year, quarter, day)
            self._quarter = (year, quarter + 1) if quarter < 4 else (year + 1, 1)

    def _send_company(self, number: int, day: dt.date) -> None:
        one = self.companies[number]
        founded = "" if number % 7 == 0 else f"19{number % 90 + 10}0{number % 9 + 1}15"
        self.lines.append(
            f"{day:%Y%m%d}-120000CMP{one.name:<60}{number:010d}ACTV{one.industry:<2}{one.rating:<4}{founded:<8}"
            f"{f'{number} Main Street':<80}{'':<80}{f'{10000 + number}':<12}{one.city:<25}{'NY':<20}{'USA':<24}"
            f"{one.chief:<46}{f'It makes {number} things':<150}"
        )

    def _send_security(self, symbol: str, day: dt.date) -> None:
        one = self.securities[symbol]
        self.lines.append(
            f"{day:%Y%m%d}-130000SEC{symbol:<15}{'COMMON':<6}ACTV{one.name:<70}{'NYSE':<6}{1_000_000 + len(symbol):>13}"
            f"{one.since:%Y%m%d}{one.since:%Y%m%d}{one.dividend:>12.2f}{self._reference(one.company):<60}"
        )

    def _send_figures(self, number: int, year: int, quarter: int, day: dt.date) -> None:
        rng = self.rng
        starts = dt.date(year, quarter * 3 - 2, 1)
        eps, revenue = rng.randrange(-100, 600) / 100, rng.randrange(1_000_000, 900_000_000)
        self.lines.append(
            f"{day:%Y%m%d}-140000FIN{year:04d}{quarter}{starts:%Y%m%d}{day:%Y%m%d}{revenue:>17.2f}{revenue / 10:>17.2f}"
            f"{eps:>12.2f}{eps:>12.2f}{0.1:>12.2f}{revenue / 20:>17.2f}{revenue * 2:>17.2f}{revenue:>17.2f}"
            f"{1_000_000:>13}{1_100_000:>13}{self._reference(number):<60}"
        )

    def _reference(self, company: int) -> str:
        """By number, or by the name that the company has now."""
        return f"{company:010d}" if self.rng.random() < 0.5 else self.companies[company].name


def _quarter_ends(last: dt.date) -> list[dt.date]:
    """The first days after each quarter."""
    firsts = [dt.date(year, month, 1) for year in range(2015, last.year + 1) for month in (1, 4, 7, 10)]
    return [one for one in firsts if dt.date(2015, 4, 1) <= one <= last]
