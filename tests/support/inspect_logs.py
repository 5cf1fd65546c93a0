"""Logs that Inspect AI itself writes with its mock model, in a process of its own: it warns at its
end. Each part of a log that cotlab keeps stands in one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import sys
from inspect_ai import Task, eval as evaluate
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice, ChatMessageAssistant, ChatMessageUser, ContentAudio, ContentDocument,
    ContentImage, ContentReasoning, ContentText, ModelOutput, ModelUsage, get_model,
)
from inspect_ai.scorer import choice, includes, match
from inspect_ai.solver import generate, multiple_choice, solver, use_tools
from inspect_ai.tool import ToolCall, tool

def reply(content, calls=None):
    message = ChatMessageAssistant(content=content, source="generate", tool_calls=calls)
    stop = "tool_calls" if calls else "stop"
    done = ChatCompletionChoice(message=message, stop_reason=stop)
    usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    return ModelOutput(model="mockllm/model", choices=[done], usage=usage)

def write(name, samples, outputs, solve, scored, model="mockllm/model", **more):
    task = Task(dataset=samples, solver=solve, scorer=scored, name=name, **more)
    chosen = get_model(model, custom_outputs=outputs)
    evaluate(task, model=chosen, log_dir=sys.argv[1], display="none", log_format="eval")

@tool
def add():
    async def execute(a: int, b: int):
        '''Add two numbers.

        Args:
            a: first
            b: second
        '''
        return str(a + b)
    return execute

@solver
def fails(*ids):
    async def solve(state, generate):
        if state.sample_id in ids:
            raise RuntimeError("sandbox died")
        return await generate(state)
    return solve

sums = [Sample(id=1, input="What is 7 + 5 - 3?", target="9", metadata={"level": 2}),
        Sample(id=2, input="What is 2 * 6 + 1?", target="13")]
thought = [reply([ContentReasoning(reasoning=text), ContentText(text=answer)])
           for text, answer in (("7 + 5 = 12.\\n12 - 3 = 9.", "ANSWER: 9"),
                                ("2 * 6 = 12.\\n12 + 1 = 13.", "ANSWER: 13"),
                                ("7 + 5 = 13.\\n13 - 3 = 10.", "ANSWER: 10"),
                                ("2 * 6 = 12.\\n12 + 1 = 14.", "ANSWER: 14"))]
write("epochs", sums, thought, generate(), match(), epochs=2)
write("other", sums, thought[2:], generate(), match(), model="mockllm/other")
write("agent", [Sample(id="eggs", input="How many are 12, 30 and 5?", target="47")],
      [reply("I add 12 and 30.", [ToolCall(id="1", function="add", arguments={"a": 12, "b": 30})]),
       reply("The tool said 42.", [ToolCall(id="2", function="add", arguments={"a": 42, "b": 5})]),
       reply("The sum is 47.", [ToolCall(id="3", function="submit", arguments={"answer": "47"})])],
      react(tools=[add()]), includes())
write("choices", [Sample(id="p", input="Which are prime?", choices=["2", "4", "5"],
                         target=["A", "C"])],
      [reply("2 is prime.\\n5 is prime.\\n\\nANSWER: A,C")], multiple_choice(cot=True), choice())
errored = [Sample(id=name, input=f"{name}?", target="2") for name in ("e1", "e2")]
write("errored", errored, [reply("1 + 1 = 2.\\nANSWER: 2")], fails("e2"), match(),
      fail_on_error=False)
write("failed", errored, [], fails("e1", "e2"), match(), fail_on_error=False)
shown = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
picture = [ContentText(text="What is it?"), shown]
write("picture", [Sample(id="im", input=[ChatMessageUser(content=picture)], target="cat")],
      [reply("It has fur.\\nANSWER: cat")], generate(), includes())

@tool
def camera():
    async def execute():
        '''Take a picture.'''
        return [ContentText(text="Taken:"), ContentImage(image=shown.image, detail="high")]
    return execute

large = "data:image/png;base64," + "iVBORw0KGgo" * 5_000 + "="
given = [ContentText(text="What is it?"), ContentImage(image=large, detail="low"),
         ContentDocument(document="data:application/pdf;base64,JVBERi0=", filename="notes.pdf"),
         ContentAudio(audio="data:audio/wav;base64,UklGRg==", format="wav")]
drawn = [ContentText(text="It has fur."), shown, ContentText(text="ANSWER: cat")]
write("files", [Sample(id="f", input=[ChatMessageUser(content=given)], target="cat")],
      [reply("I look.", [ToolCall(id="1", function="camera", arguments={})]), reply(drawn)],
      [use_tools(camera()), generate()], includes())
"""


def make_inspect_logs(folder: Path) -> dict[str, Path]:
    """Write the logs into a folder; return their files by the name of the task."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(folder)],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return {path.name.split("_")[1]: path for path in folder.glob("*.eval")}
