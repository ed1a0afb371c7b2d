"""Facts follow what people say of themselves later on: who moved lives somewhere else, and who lived somewhere once does not."""

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.settings import FactSettings
from pagefile.testing import FakeClock
from pagefile.text.fact_rules import stated

#: What is said in order; a piece of some fact that is held then, each; and what is in none.
CHANGES = [
    (["我住在杭州。", "我搬家了，现在住在上海。"], ["上海"], ["杭州"]),
    (["我住在杭州西湖区文三路。", "我搬家了，现在住在上海浦东新区张江。"], ["张江"], ["杭州"]),
    (["我住在杭州。", "上个月我从杭州搬到了上海。"], ["上海"], ["杭州"]),
    (["我住在杭州。", "上个月我们搬到上海了。"], ["上海"], ["杭州"]),
    (["我住在杭州。", "我已经不住杭州了，搬到深圳南山了。"], ["南山"], ["住在杭州"]),
    (["我家在北京朝阳区。", "我们家搬到通州了。"], ["通州"], ["朝阳"]),
    (["我是护士。", "我换工作了，现在是产品经理。"], ["产品经理"], ["护士"]),
    (["我是护士。", "我换工作了，不做护士了，现在是产品经理。"], ["产品经理"], ["护士"]),
    (["我在阿里上班。", "我跳槽了，现在在字节跳动工作。"], ["字节"], ["阿里"]),
    (["我在腾讯做后端开发。", "我上周离职了。"], ["离职"], ["腾讯"]),
    (["我喜欢喝咖啡。", "我戒咖啡了，现在改喝绿茶。"], ["戒咖啡", "绿茶"], ["喜欢喝咖啡"]),
    (["我喜欢吃辣。", "我现在不吃辣了，胃不好。"], ["不吃辣"], ["喜欢吃辣"]),
    (["我喜欢吃辣。", "我现在不能吃辣了。"], ["不能吃辣"], ["喜欢吃辣"]),
    (["我不吃香菜。", "其实香菜我现在能吃了。"], ["能吃香菜"], ["不吃"]),
    (["我吃素。", "我不再吃素了。"], ["不再吃素"], ["用户吃素"]),
    (["我对花生过敏。", "医生说我对花生不过敏了。"], ["不再过敏"], ["对花生过敏"]),
    (["我叫李明。", "以后叫我明哥吧。"], ["李明", "明哥"], []),
    (["我住在上海。", "我住在杭州的时候经常去西湖。"], ["上海"], ["杭州"]),
    (["我单身。", "我上个月结婚了。"], ["已婚"], ["单身"]),
    (["我不喝咖啡。", "我爱喝咖啡。"], ["喜欢喝咖啡"], ["不喝"]),
    (["I live in Hangzhou.", "We moved to Shanghai last month."], ["in Shanghai"], ["month", "Hangzhou"]),
    (["I am a nurse.", "I changed jobs, I am a product manager now."], ["manager"], ["nurse"]),
    (["我住在成都。", "今年三月我们全家搬到重庆了。"], ["重庆"], ["成都"]),
    (["我家在武汉。", "我从武汉搬来广州了。"], ["广州"], ["在武汉"]),
    (["我住在南京鼓楼区。", "我们搬家了，现在住在江宁。"], ["江宁"], ["鼓楼"]),
    (["我住在西安。", "我不住西安了。"], [], ["用户住在西安"]),
    (["我住在苏州。", "我以前住在无锡。"], ["苏州"], ["无锡"]),
    (["我住在苏州。", "我在无锡住过三年。"], ["苏州"], ["无锡"]),
    (["我住在苏州。", "等我搬到上海以后再说。"], ["苏州"], ["上海"]),
    (["我住在苏州。", "我明年想搬到厦门。"], ["苏州"], ["厦门"]),
    (["我住在青岛。", "我住在烟台那会儿天天吃海鲜。"], ["青岛"], ["烟台"]),
    (["我现在住在长沙。", "去年我住在岳阳。"], ["长沙"], ["岳阳"]),
    (["我是一名会计。", "我转行了，现在做产品运营。"], ["运营"], ["会计"]),
    (["我在华为上班。", "我从华为离职了，现在在小米上班。"], ["小米"], ["华为工作"]),
    (["我是老师。", "我已经不当老师了。"], [], ["用户是老师"]),
    (["我在美团工作。", "我在百度上班的时候学的 Go。"], ["美团"], ["百度"]),
    (["我在美团工作。", "我在百度工作过两年。"], ["美团"], ["百度"]),
    (["我是程序员。", "我退休了。"], ["退休"], []),
    (["我喜欢喝奶茶。", "我不喝奶茶了。"], [], ["喜欢喝奶茶"]),
    (["我喜欢吃榴莲。", "我现在不爱吃榴莲了。"], [], ["用户喜欢吃榴莲"]),
    (["我不吃猪肉。", "我现在吃猪肉了。"], [], ["不吃猪肉"]),
    (["我不吃葱。", "葱我现在可以吃了。"], [], ["用户不吃葱"]),
    (["我吃素。", "我早就不吃素了。"], [], ["用户吃素"]),
    (["我吃素。", "我又开始吃肉了。"], [], ["用户吃素"]),
    (["我喜欢喝可乐。", "我把可乐戒了。"], ["戒"], ["喜欢喝可乐"]),
    (["我每天抽烟。", "我戒烟半年了。"], ["戒烟"], []),
    (["我喜欢喝红茶。", "红茶我喝腻了，改喝乌龙茶。"], ["乌龙"], []),
    (["我对虾过敏。", "医生说我现在对虾不过敏了。"], [], ["用户对虾过敏"]),
    (["我对虾过敏。", "我对螃蟹不过敏。"], ["对虾过敏"], ["对螃蟹过敏"]),
    (["我单身。", "我今年五月结婚了。"], ["婚"], ["单身"]),
    (["我已婚。", "我去年离婚了。"], ["离婚"], ["已婚"]),
    (["我单身。", "我已经不是单身了。"], [], ["用户单身"]),
    (["I like eating meat.", "I no longer eat meat."], ["no longer"], ["likes eating meat"]),
    (["I love coffee.", "I quit coffee last month."], ["coffee"], ["likes coffee"]),
    (["I love drinking wine.", "I've given up wine."], ["wine"], ["likes drinking wine"]),
    (["I drink tea. I love tea.", "I don't drink tea anymore."], [], ["likes tea"]),
    (["I'm vegan.", "I'm not vegan anymore."], [], ["is vegan"]),
    (["I'm a vegetarian.", "I started eating meat again."], ["meat"], ["is a vegetarian"]),
    (["I live in Lyon.", "I no longer live in Lyon."], [], ["user lives in Lyon"]),
    (["I live in Lyon.", "When I lived in Nice I swam every day."], ["Lyon"], ["Nice"]),
    (["I live in Lyon.", "I used to live in Nice."], ["Lyon"], ["user lives in Nice", "no longer"]),
    (["I live in Lyon.", "Last year I moved to Nice."], ["Nice"], ["Lyon"]),
    (["I live in Lyon.", "We moved from Lyon to Nice two weeks ago."], ["Nice"], ["in Lyon", "ago"]),
    (["I live in Lyon.", "I don't live in Nice anymore."], ["Lyon"], ["user lives in Nice", "no longer"]),
    (["I'm single.", "I got married in June."], ["married"], ["single"]),
    (["I'm married.", "We got divorced last year."], ["divorced"], ["is married"]),
    (["I'm a nurse.", "I switched careers, I'm now a teacher."], ["teacher"], ["nurse"]),
    (["I work at Google.", "I left Google and joined Stripe."], ["Stripe"], ["works for Google"]),
    (["I work for Nokia.", "I no longer work for Nokia."], [], ["user works for Nokia"]),
    (["I work at Google.", "When I worked at Nokia I learnt C."], ["Google"], ["Nokia"]),
    (
        ["I'm allergic to peanuts.", "My doctor says I'm no longer allergic to peanuts."],
        [],
        ["is allergic to peanuts"],
    ),
    (
        ["I'm allergic to peanuts.", "I'm not allergic to cashews."],
        ["allergic to peanuts"],
        ["is allergic to cashews"],
    ),
    (["我住在福州。", "前年我们一家从福州搬到了泉州。"], ["泉州"], ["福州"]),
    (["我家在沈阳。", "我们去年搬家了，现在家在大连。"], ["大连"], ["沈阳"]),
    (["我住在合肥。", "我男朋友搬到南京了，喜欢那边。"], ["合肥"], ["南京"]),
    (["我住在合肥。", "我住在学校宿舍时认识了他。"], ["合肥"], ["宿舍"]),
    (["我在中兴工作。", "我已经不在中兴了，去了联想。"], [], ["用户在中兴"]),
    (["我是律师。", "我不做律师了，现在当老师。"], ["老师"], ["律师"]),
    (["我是程序员。", "我转岗了，现在是项目经理。"], ["项目经理"], ["程序员"]),
    (["我抽烟。", "我已经不抽烟了。"], ["不抽烟"], []),
    (["我爱吃火锅。", "我现在不爱吃火锅了，上火。"], ["不"], ["用户喜欢吃火锅"]),
    (["我不吃羊肉。", "羊肉我现在能吃了。"], ["能吃羊肉"], ["不吃"]),
    (["我吃素。", "我去年开始吃荤了。"], ["荤"], ["用户吃素"]),
    (["我已婚。", "我离婚了，一个人带孩子。"], ["离婚"], ["已婚"]),
    (["我在滴滴做产品经理。", "我离职了。"], ["离职"], ["滴滴"]),
    (["I live in Bath.", "I moved back to Leeds."], ["Leeds"], ["Bath"]),
    (["I live in Bath.", "I'm moving to Leeds next month."], ["Bath"], ["Leeds"]),
    (["I live in Bath.", "If I lived in Leeds I'd cycle."], ["Bath"], ["Leeds"]),
    (["I love beer.", "I stopped drinking beer two years ago."], ["beer"], ["likes beer"]),
    (["I love meat.", "I don't eat meat any more."], [], ["likes meat"]),
    (["I'm a teacher.", "I'm no longer a teacher."], [], ["is a teacher"]),
    (["I work at Meta.", "I recently joined Apple."], ["Apple"], ["Meta"]),
    (["I work at Meta.", "I left Meta last week."], ["left Meta"], ["works for Meta"]),
    (["I'm divorced.", "We got married again."], ["married"], ["divorced"]),
]
SINGLE = [
    (["我女儿三岁了，叫朵朵。"], ["朵朵", "三岁"], []),
    (["我有一只猫叫咪咪。"], ["咪咪"], ["有一只"]),
    (["以后回答我请用表格。"], ["表格"], []),
    (["以后回答请用表格。"], ["表格"], []),
    (["请记住：我开的是特斯拉Model 3。"], ["特斯拉"], ["我"]),
    (["如果我住在北京就好了。"], [], ["北京"]),
    (["我老婆怀孕了，预产期六月。"], ["怀孕"], []),
    (["我有乳糖不耐受。"], ["乳糖"], []),
    (["我住在大连的话就好了。"], [], ["大连"]),
    (["我已经搬到珠海了。"], ["珠海"], []),
    (["上周我刚搬到昆明。"], ["昆明"], []),
    (["我在京东做测试。"], ["京东"], []),
    (["我儿子五岁了，叫浩浩。"], ["浩浩", "五岁"], ["用户五岁", "用户的名字"]),
    (["我有个女儿，叫小满，今年上一年级。"], ["小满"], ["用户的名字"]),
    (["我老婆怀孕三个月了。"], ["怀孕"], ["用户怀孕"]),
    (["我妈妈姓王，喜欢打太极。"], [], ["用户喜欢"]),
    (["我有麸质不耐受。"], ["麸质"], []),
    (["我对酒精不耐受。"], ["酒精"], []),
    (["以后回复都简短一点。"], ["简短"], []),
    (["以后给我写代码要带注释。"], ["注释"], []),
    (["从今以后回答我的问题时请先给结论。"], ["结论"], []),
    (["以后叫我老周就行。"], ["老周"], []),
    (["你可以叫我阿May。"], ["阿May"], []),
    (["以后再说吧。"], [], ["要求"]),
    (["以后我要去北京读书。"], [], ["要求"]),
    (["以后会不会更贵？"], [], ["要求"]),
    (["请记住：我女儿对鸡蛋过敏。"], ["女儿对鸡蛋过敏"], ["我女儿"]),
    (["记住我周三不开会。"], ["周三不开会"], ["我周三"]),
    (["帮我记一下，我住在深圳，对花粉过敏。"], ["深圳", "花粉"], ["我"]),
    (["我养了一只狗叫旺财。"], ["旺财"], []),
    (["我家里有两只猫，叫年糕和汤圆。"], ["年糕"], []),
    (["我喜欢安静的时候看书。"], ["看书"], []),
    (["他不再吃素了。"], [], ["素"]),
    (["我同事搬到上海了。"], [], ["上海"]),
    (["我要是不再吃素会怎样？"], [], ["素"]),
    (["戒咖啡好难啊。"], [], ["咖啡"]),
    (["不住酒店了，改住民宿。"], [], ["民宿", "酒店"]),
    (["我改了代码，现在是绿的。"], [], ["绿"]),
    (["我换了手机，现在用不了。"], [], ["用不了"]),
    (["我结婚那年买的车。"], [], ["婚"]),
    (["我不再需要这个文件了。"], [], ["文件"]),
    (["我已经不发烧了。"], [], ["发烧"]),
    (["My daughter is three and her name is Lily."], ["Lily"], ["user's name is Lily"]),
    (["My son Leo is five."], ["Leo"], []),
    (["I can't tolerate gluten."], ["gluten"], []),
    (["Always answer in French."], ["French"], []),
    (["Call me Max from now on."], ["Max"], []),
    (["Please remember that I'm allergic to latex."], ["The user is allergic to latex"], ["I'm"]),
    (["Remember: I never work on Fridays."], ["Fridays"], []),
    (["I no longer need the file."], [], ["file"]),
    (["I quit the app and restarted it."], [], ["app"]),
    (["I gave up on the first approach."], [], ["approach"]),
    (["I left the oven on."], [], ["oven"]),
    (["He no longer eats meat."], [], ["meat"]),
    (["我有两个儿子，老大叫大宝，老二叫小宝。"], ["两个儿子"], []),
    (["我女儿叫糖糖，今年五岁，上幼儿园。"], ["糖糖", "五岁", "幼儿园"], ["用户五岁"]),
    (["我儿子对花生过敏，叫乐乐。"], ["花生", "乐乐"], ["用户对花生", "用户的名字"]),
    (["我有坚果不耐受，麻烦注意。"], ["坚果"], []),
    (["以后请别用表格。"], ["表格"], []),
    (["今后写邮件都用英文。"], ["英文"], []),
    (["以后你就叫我小陈。"], ["小陈"], []),
    (["记住：我每周三下午要去接孩子。"], ["周三"], ["我"]),
    (["我以前在阿里工作，现在在蚂蚁上班。"], ["蚂蚁"], ["阿里"]),
    (["我搬了一张桌子，现在在客厅。"], [], ["客厅"]),
    (["我毕业了，现在是待业。"], [], ["待业"]),
    (["她结婚了，我去喝喜酒。"], [], ["已婚"]),
    (["我想戒咖啡。"], [], ["咖啡"]),
    (["我快要搬到广州了。"], [], ["广州"]),
    (["我打算不再吃素了。"], [], ["素"]),
    (["我能吃了吗？"], [], ["吃"]),
    (["我开始吃早饭了。"], [], ["早饭"]),
    (["I left Paris on Monday."], [], ["Paris"]),
    (["I no longer have a headache."], [], ["headache"]),
    (["I quit school at 16."], [], ["school"]),
    (["My sister no longer eats meat."], [], ["user no longer"]),
    (["My son is 7 and his name is Tom."], ["7", "Tom"], ["name is Tom"]),
    (["Remember that my cat is called Miso."], ["Miso"], ["my cat"]),
    (["Just call me Bo."], ["Bo"], []),
    (["Always reply in Spanish, please."], ["Spanish"], []),
]


@pytest.fixture(scope="module")
def held():
    """What is held after each of these, each of a user of its own: read by the rules, all at once."""
    return anyio.run(_held)


async def _held() -> dict[str, list[str]]:
    clock = FakeClock()
    settings = Settings(facts=FactSettings(extract="rules"))
    async with Memory.open("memory://", settings=settings, embedder="none", clock=clock) as memory:
        for said, *_ in CHANGES + SINGLE:
            for number, message in enumerate(said):
                await memory.conversation(f"{said} {number}", user_id=str(said)).record(message, "OK.")
                clock.advance(3600)
        await memory.settle()
        return {
            str(said): [fact.text for fact in await memory.facts(str(said))] for said, *_ in CHANGES + SINGLE
        }


@pytest.mark.parametrize(("said", "present", "absent"), CHANGES)
def test_later_statements_take_the_place_of_earlier_ones(held, said, present, absent):
    """And only they do: not what was so once, will be, would be, or is so of somebody else."""
    _compare(held[str(said)], present, absent)


@pytest.mark.parametrize(("said", "present", "absent"), SINGLE)
def test_what_is_read_out_of_one_message(held, said, present, absent):
    """Once, in the third person, and of whom it is said."""
    _compare(held[str(said)], present, absent)


def _compare(facts, present, absent):
    assert [piece for piece in present if not any(piece in fact for fact in facts)] == []
    assert [fact for fact in facts if any(piece in fact for piece in absent)] == []
    assert len(facts) == len(set(facts))


def test_each_quote_is_in_its_message():
    """Also of a clause whose subject is in another one."""
    for said, *_ in CHANGES + SINGLE:
        for message in said:
            assert all(one.quote in message for one in stated(message))
