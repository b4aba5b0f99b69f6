"""Makes the book's math font anew: of Latin Modern Math, what `characters.txt` names.

    python subset.py latinmodern-math.otf        (of Debian's package fonts-lmodern, with fonttools and brotli of PyPI)
"""

import hashlib
import pathlib
import re
import sys

from fontTools import subset

FOLDER = pathlib.Path(__file__).parent
LIST = FOLDER / "characters.txt"
FONT = FOLDER / "../theme/fonts/latinmodern-math-subset.woff2"

font = subset.load_font(sys.argv[1], subset.Options())
options = subset.Options(
    flavor="woff2",
    desubroutinize=True,
    # Smaller forms for indices and exponents, and primes that stand as high as these.
    layout_features=["ssty", "kern"],
    name_IDs=["*"],
    # The same bytes every time.
    recalc_timestamp=False,
)
text = LIST.read_text()
lines = [line.split("#")[0] for line in text.splitlines()]
subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=[one for line in lines for one in subset.parse_unicodes(line)])
subsetter.subset(font)
# Its licence requires a new name for a changed font.
for record in font["name"].names:
    if record.nameID in (1, 3, 4, 6, 16):
        blank = "" if record.nameID == 6 else " "
        record.string = record.toUnicode() + f"{blank}Subset"
font["CFF "].cff.fontNames[0] += "Subset"
subset.save_font(font, FONT, options)
hash = hashlib.sha256(FONT.read_bytes()).hexdigest()
LIST.write_text(re.sub("(?m)^# font .*$", f"# font {hash}", text))
print(f"{FONT.stat().st_size} bytes")
