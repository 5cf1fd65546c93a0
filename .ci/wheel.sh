#!/usr/bin/env bash
# Install a built wheel as its users do, in bare environments away from the checkout: plain, with the
# dashboard and local models, and beside inspect-scout, which needs an older DuckDB.
#   .ci/wheel.sh [plain|extras]      extras: the dashboard, then beside inspect-scout
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
check=${1:-plain}
app=
cleanup() { if [ -n "$app" ]; then kill "$app" 2>/dev/null || true; fi; rm -rf "$work"; }
trap cleanup EXIT
unset PYTHONPATH PYTHONDONTWRITEBYTECODE COTLAB_STORE XDG_DATA_HOME
export HF_HUB_OFFLINE=1 NO_PROXY=127.0.0.1,localhost PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir "$work/elsewhere" "$work/source"
base_path=$PATH base_home=$HOME

took() { echo "wheel: $1, $SECONDS s"; }
fail() { echo "wheel: $1" >&2; exit 1; }
environment() {  # a bare environment NAME with the requirements that follow; its home is its own
  export HOME=$base_home PATH=$base_path
  python3 -m venv "$work/$1"
  local name=$1 attempt
  shift
  for attempt in 1 2; do  # a download may break once
    "$work/$name/bin/pip" install --quiet --no-compile --prefer-binary "$@" 2>"$work/pip.log" && break
    [ "$attempt" = 1 ] || { cat "$work/pip.log" >&2; fail "$name cannot be installed"; }
  done
  export HOME=$work/home-$name PATH=$work/$name/bin:$base_path
  mkdir "$HOME"
  cd "$work/elsewhere"
}
refused() {  # the command fails with exit code 2, one line and the name of the extra
  local extra=$1 code=0 said
  shift
  said=$("$@" 2>&1) || code=$?
  [ "$code" = 2 ] || fail "$* ended with $code: $said"
  [ "$(wc -l <<<"$said")" = 1 ] || fail "$* printed more than one line: $said"
  grep -qF "pip install $wheel[$extra]" <<<"${said//\'/}" || fail "$* does not name the extra: $said"
}
store_outside() {  # the store lies in the user's folder, and nothing in the installed package
  cotlab doctor >"$work/doctor" || fail "cotlab doctor fails"
  grep -q "^store: $HOME/" "$work/doctor" || fail "$(grep ^store: "$work/doctor")"
  [ -z "$(find "$work" -path '*site-packages*' -name '*.duckdb')" ] || fail "a store in site-packages"
}
(cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$work/source")
python3 -m pip wheel --quiet --no-deps --wheel-dir "$work" "$work/source" 2>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
wheel=$(echo "$work"/cotlab_trust-*.whl)
took "built, $(du -k "$wheel" | cut -f1) kB"

if [ "$check" = plain ]; then
environment plain "$wheel"
python - <<'END'
import sys
from importlib.util import find_spec
from pathlib import Path

site = next(Path(p) for p in sys.path if p.endswith("site-packages"))
installer = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
files = [p for p in site.rglob("*") if p.is_file() and p.relative_to(site).parts[0] not in installer]
size = sum(p.stat().st_size for p in files if p.suffix != ".pyc") / 1e6
heavy = ["torch", "transformers", "streamlit", "plotly", "openai", "anthropic", "google.genai"]
found = [name for name in heavy if find_spec(name.partition(".")[0])]
assert not found, f"the core brings {found}"
assert size <= 650, f"the core takes {size:.0f} MB"
print(f"wheel: the core takes {size:.0f} MB without bytecode")
END
python - <<'END'
import cotlab

assert cotlab.flags("3 + 4 = 7. So the answer is 7.", question="What is 3 + 4?").value == 1.0
assert cotlab.backward_verification(("3 + 4 = 7", "7 * 2 = 14"), link="reverse").value == 1.0
algebra = cotlab.backward_verification(("2*x + 6 = 14", "x = 4"), link="reverse")
assert algebra.value == 1.0, algebra.reason
scores = [i / 40 for i in range(40)]
fitted = cotlab.calibrate(scores, [i % 3 > 0 or i > 25 for i in range(40)])
assert 0 <= fitted.predict(0.5) <= 1
assert len(cotlab.load_suite("wordproblems").items) > 100
END
cotlab run --task-suite math --provider echo --model echo --limit 3 >/dev/null 2>"$work/log" || { cat "$work/log" >&2; fail "a run with echo fails"; }
refused local cotlab demo
refused app cotlab app
refused vendors cotlab run --task-suite math --provider openai --model gpt-4.1 --limit 1
store_outside
took plain
exit 0
fi

sed 's/\[[^]]*\]//' "$root/requirements.txt" >"$work/locked.txt"  # constraints take no extras
environment full -c "$work/locked.txt" "$wheel[app,local]"
cotlab demo >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "cotlab demo fails"; }
grep -q '^Report: ' "$work/log" || fail "cotlab demo writes no report"
store_outside
took "cotlab demo"
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cotlab app --port "$port" >"$work/log" 2>&1 &
app=$!
STREAMLIT_LOGGER_LEVEL=error python - "$port" "$work/log" <<'END'
import json
import sys
import time
import urllib.request
from pathlib import Path

base = f"http://127.0.0.1:{sys.argv[1]}"
for _ in range(240):
    try:
        assert urllib.request.urlopen(base, timeout=5).status == 200
        break
    except OSError:
        time.sleep(0.25)
else:
    raise SystemExit(f"the dashboard does not answer: {Path(sys.argv[2]).read_text()[-2000:]}")

from streamlit.testing.v1 import AppTest

from cotlab.core.resources import dashboard_path
import cotlab.ui

main, pages = Path(cotlab.ui.__file__).with_name("main.py"), sorted(dashboard_path("pages").glob("*.py"))
assert len(pages) >= 20, pages
for page in pages:
    test = AppTest.from_file(str(main), default_timeout=90)
    test.run()
    test.switch_page(str(page)).run()
    assert not test.exception, (page.name, [e.value for e in test.exception])
    shown = [json.loads(part.proto.json or "{}").get("heading") for part in test.get("bidi_component")]
    assert test.title or any(shown), f"{page.name} shows no title"
print(f"wheel: {len(pages)} pages open")
END
kill "$app"
code=0
wait "$app" || code=$?
app=
[ "$code" = 0 ] || [ "$code" = 143 ] || fail "cotlab app ended with $code"
took "cotlab app"

environment scout "$wheel" inspect-scout
pip check >"$work/log" || { cat "$work/log" >&2; fail "inspect-scout and cotlab do not fit"; }
python -c "import cotlab, inspect_scout, duckdb; cotlab.run_suite; assert duckdb.__version__ < '2'"
cotlab run --task-suite math --provider echo --model echo --limit 3 >/dev/null 2>"$work/log" || { cat "$work/log" >&2; fail "a run with an older DuckDB fails"; }
COTLAB_STORE=$work/home-full/.local/share/cotlab/store cotlab runs 2>"$work/log" && fail "DuckDB 1 opens a store of DuckDB 2"
grep -q 'written by DuckDB 2' "$work/log" || { cat "$work/log" >&2; fail "the versions of DuckDB are not named"; }
unset COTLAB_STORE
cotlab run --task-suite math --provider echo --model echo --limit 3 --chain own --scorer flags --embedder none --run-id scanned >/dev/null 2>"$work/log" || { cat "$work/log" >&2; fail "a run of flags fails"; }
cotlab export scanned --output "$work/scanned.eval" >/dev/null || fail "a run is not exported to Inspect"
cotlab import inspect "$work/scanned.eval" >/dev/null || fail "an Inspect log is not imported"
cat >"$work/scan.py" <<'END'
import sys

from inspect_scout import scan, scan_results_df, transcripts_from

from cotlab.inspect.scanners import chain_faults

if __name__ == "__main__":
    log, scans = sys.argv[1:]
    done = scan([chain_faults()], transcripts=transcripts_from(log), scans=scans, display="none")
    (results,) = scan_results_df(done.location).scanners.values()
    assert done.complete and len(results) == 3, done
    assert all(0.3 <= value <= 1 for value in results["value"]), results["value"]
END
python "$work/scan.py" "$work/scanned.eval" "$work/scans" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the scanner does not run in inspect-scout"; }
took "beside inspect-scout"
